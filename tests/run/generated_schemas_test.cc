// The built-in declarations (src/ops/records/builtin_schemas.cc) are LibTorch's own, in its order.
// FXGRAPH_WRITE_SCHEMAS=1 writes the file anew from LibTorch's registry: for the packets that are in it already, and
// for those that FXGRAPH_MORE_SCHEMAS names (`aten::erf,aten::erfc`).
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/builtin_schemas.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/run/operators.h>

namespace fx::generated_schemas_test {

constexpr const char* kFile = "src/ops/records/builtin_schemas.cc";

std::set<std::string> packets() {
  std::set<std::string> names;
  for (const std::string_view declaration : internal::builtin_declarations())
    names.emplace(packet_of(parse_schema(declaration).target.view()));
  if (const char* more = std::getenv("FXGRAPH_MORE_SCHEMAS")) {
    std::istringstream list(more);
    for (std::string name; std::getline(list, name, ',');) names.insert(name);
  }
  return names;
}

/// What the file should say of a packet: LibTorch's overloads, normalised; what it does not have stays as it is.
std::vector<std::string> declarations_of(const std::string& packet) {
  std::vector<std::string> made;
  for (const TorchOperator* op : torch_overloads(Symbol(packet))) {
    std::ostringstream text;
    text << *op->schema;
    try {
      made.push_back(parse_schema(text.str()).str());
    } catch (const Error&) {
      // One that no graph can call: it takes a class, say.
    }
  }
  if (made.empty()) {
    for (const std::string_view ours : internal::builtin_declarations(packet)) made.emplace_back(ours);
  }
  return made;
}

void write_file() {
  std::ifstream in(kFile);
  std::ostringstream out;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (inside && line == "};") inside = false;
    if (!inside) out << line << "\n";
    if (line != "constexpr std::string_view kDeclarations[] = {") continue;
    inside = true;
    for (const std::string& packet : packets()) {
      for (const std::string& declaration : declarations_of(packet)) out << "    \"" << declaration << "\",\n";
    }
  }
  in.close();
  std::ofstream(kFile) << out.str();
}

#if TORCH_VERSION_MAJOR == 1
TEST(GeneratedSchemas, AreThoseOfLibTorch) {
  install_schema_source();
  if (std::getenv("FXGRAPH_WRITE_SCHEMAS")) write_file();
  std::size_t compared = 0;
  for (const std::string& packet : packets()) {
    std::map<std::string, std::string> theirs;
    for (const std::string& declaration : declarations_of(packet))
      theirs[parse_schema(declaration).target.str()] = declaration;
    for (const std::string_view ours : internal::builtin_declarations(packet)) {
      const auto at = theirs.find(parse_schema(ours).target.str());
      // Another LibTorch's, or one that stands in for it here (run/missing_operators.h).
      if (at == theirs.end() || ours.starts_with("aten::rms_norm(")) continue;
      ++compared;
      EXPECT_EQ(at->second, ours) << "FXGRAPH_WRITE_SCHEMAS=1 writes " << kFile << " anew";
    }
  }
  EXPECT_GT(compared, 1500u);
}
#else
// The declarations are those of LibTorch 1.13. Later releases add arguments and defaults; what is written stays what it
// was, as many results come, and they come of arguments of the same names.
TEST(GeneratedSchemas, MeanTheSameInLaterReleases) {
  install_schema_source();
  std::size_t compared = 0;
  std::string others;
  for (const std::string& packet : packets()) {
    std::map<std::string, OperatorSchema> theirs;
    for (const std::string& declaration : declarations_of(packet)) {
      OperatorSchema schema = parse_schema(declaration);
      theirs.emplace(schema.target.str(), std::move(schema));
    }
    for (const std::string_view declaration : internal::builtin_declarations(packet)) {
      const OperatorSchema ours = parse_schema(declaration);
      const auto found = theirs.find(ours.target.str());
      if (found == theirs.end()) continue;  // later releases took it away
      ++compared;
      bool same = found->second.returns.size() == ours.returns.size();
      for (const SchemaArgument& argument : ours.arguments) {
        const auto at = std::ranges::find(found->second.arguments, argument.name, &SchemaArgument::name);
        same &= at != found->second.arguments.end() && at->alias.writes == argument.alias.writes;
      }
      if (!same) others += " " + ours.target.str();
    }
  }
  EXPECT_GT(compared, 1400u);
  // Renamed (`from_`), and declared to write what they always wrote (`noise`).
  EXPECT_EQ(others,
            " aten::can_cast aten::rrelu_with_noise aten::rrelu_with_noise.out aten::rrelu_with_noise_"
            " profiler::_record_function_exit profiler::_record_function_exit._RecordFunction");
}
#endif

}  // namespace fx::generated_schemas_test
