// fxgraph draw: a picture of a program, by the ending of its name.
#include <array>

#include <fxgraph/cli/commands.h>
#include <fxgraph/cli/options.h>
#include <fxgraph/report/draw.h>
#include <fxgraph/text/print.h>

namespace fx::cli {

namespace {

struct Picture {
  std::string_view ending;
  std::string (*draw)(const Graph&);
};
const std::array kPictures = {Picture{".svg", [](const Graph& graph) { return draw_svg(graph); }},
                              Picture{".dot", print_dot}};

}  // namespace

int draw(const DrawOptions& options, Backend* backend) {
  std::string endings;
  for (const Picture& picture : kPictures) {
    endings += (endings.empty() ? "" : ", ") + std::string(picture.ending);
    if (!options.output.ends_with(picture.ending)) continue;
    const auto model = load_model(options.file, backend, options.inputs);
    write_output(options.output, picture.draw(model->graph()));
    return kDone;
  }
  throw Error(ErrorKind::invalid_argument, "cannot draw " + options.output + ": the name must end in " + endings);
}

}  // namespace fx::cli
