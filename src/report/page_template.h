// The page of src/report/page.h without its data: the files in src/report/page/, put together by cmake/embed_page.cmake
// when the library is built. Internal to src/report/page.cc.
#pragma once

#include <string_view>

namespace fx::internal {

/// The pieces between the places that are filled in: the title, and the data as JSON inside a script element.
struct PageTemplate {
  std::string_view before_title, before_data, after_data;
};

extern const PageTemplate kPageTemplate;

}  // namespace fx::internal
