// Archives that are cut short, damaged or made to harm: each loads, or is refused with an Error that names the file.
#include <fxgraph/export/save.h>

#include <random>
#include <regex>

#include "tests/pt2/attempt.h"
#include "tests/pt2/damaged.h"

namespace fx::hostile_test {

using namespace fx::testing;
using ::testing::HasSubstr;

TEST(HostileArchive, RewritingChangesNothing) { EXPECT_EQ(outcome_of("mlp", program_of("mlp")), ""); }

TEST(HostileArchive, CutShortAnywhere) {
  const std::string whole = file_text(archive_of("tied"));
  for (std::size_t size = 0; size < whole.size(); size += 61) EXPECT_NE(outcome(whole.substr(0, size)), "") << size;
}

TEST(HostileArchive, FlippedBytes) {
  const std::string whole = file_text(archive_of("cond"));
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = whole;
    // Two of three in the directory at the end, where sizes and places are.
    const std::size_t from = i % 3 == 0 ? 0 : damaged.size() - 1400;
    damaged[from + random() % (damaged.size() - from)] ^= static_cast<char>(1 + random() % 255);
    outcome(damaged);
  }
}

// Every member of the program's JSON, one after the other, is left out or becomes something else.
TEST(HostileArchive, ChangedJson) {
  const Json flat = program_of("mlp").flatten();
  const Json values[] = {nullptr, -1, INT64_MAX, 1e300, "..", Json::array(), Json::object(), true};
  std::size_t at = 0;
  for (const auto& [path, value] : flat.items()) {
    if (path.find("/metadata/") != std::string::npos || ++at % 3 != 0) continue;
    Json changed = program_of("mlp");
    const Json::json_pointer pointer(path);
    changed[pointer] = values[at % std::size(values)];
    outcome_of("mlp", changed);
    Json without = program_of("mlp");
    if (without[pointer.parent_pointer()].is_object()) without[pointer.parent_pointer()].erase(pointer.back());
    outcome_of("mlp", without);
  }
}

// Of every call the last input, one after the other.
TEST(HostileArchive, InputsThatAreLeftOut) {
  for (const std::string name : {"mlp.core", "cond", "n_two", "p_in", "y_bounds", "o_short", "q_token", "lstm"}) {
    const Json whole = program_of(name);
    const std::size_t count = whole["graph_module"]["graph"]["nodes"].size();
    for (std::size_t i = 0; i < count; ++i) {
      Json program = whole;
      Json& inputs = program["graph_module"]["graph"]["nodes"][i]["inputs"];
      if (inputs.empty()) continue;
      inputs.erase(inputs.size() - 1);
      EXPECT_EQ(attempted(rewritten(name, {{"models/model.json", program.dump()}}), name).fault, "")
          << name << " " << i;
    }
  }
}

TEST(HostileArchive, ArgumentsWithoutNames) {
  Json program = program_of("mlp");
  program["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"][0] = "";
  program["graph_module"]["graph"] =
      Json::parse(std::regex_replace(program["graph_module"]["graph"].dump(), std::regex("\"x\""), "\"\""));
  program["graph_module"]["signature"]["input_specs"].back()["user_input"]["arg"]["as_tensor"]["name"] = "";
  EXPECT_NE(outcome_of("mlp", program), "");
}

TEST(HostileArchive, AbsurdSizesAllocateNothing) {
  Json config = Json::parse(record_of("mlp", "data/weights/model_weights_config.json"));
  config["config"]["a.weight"]["tensor_meta"]["sizes"][0]["as_int"] = std::int64_t{1} << 60;
  EXPECT_THAT(outcome(rewritten("mlp", {{"data/weights/model_weights_config.json", config.dump()}})),
              HasSubstr("reaches past its record"));
  EXPECT_THAT(outcome(rewritten("mlp", {{"data/weights/weight_0", ""}})), HasSubstr("reaches past its record"));
  EXPECT_THAT(outcome(rewritten("mlp", {{"data/weights/model_weights_config.json", R"({"config": {}})"}})),
              HasSubstr("'a.weight' is missing"));
}

TEST(HostileArchive, NamesThatLeadElsewhere) {
  Json config = Json::parse(record_of("mlp", "data/weights/model_weights_config.json"));
  config["config"]["../up"] = config["config"]["a.weight"];
  config["config"]["a..b"] = config["config"]["a.weight"];
  EXPECT_THAT(outcome(rewritten("mlp", {{"data/weights/model_weights_config.json", config.dump()}})),
              HasSubstr("is no name of a parameter"));
  std::string bytes = file_text(archive_of("mlp"));
  for (std::size_t at = bytes.find("mlp/models"); at != std::string::npos; at = bytes.find("mlp/models", at + 1))
    bytes.replace(at, 10, "mlp/../els");
  EXPECT_THAT(outcome(bytes), HasSubstr("no plain path"));
}

TEST(HostileArchive, ValuesThatDependOnThemselves) {
  Json program = program_of("mlp");
  program["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"]["as_tensor"]["name"] = "linear_1";
  EXPECT_THAT(outcome_of("mlp", program), HasSubstr("used before it is there"));
}

TEST(HostileArchive, DeeplyNested) {
  std::string spec = "[1, ";
  for (int i = 0; i < 100000; ++i) spec += R"({"type": "builtins.tuple", "context": "null", "children_spec": [)";
  Json program = program_of("mlp");
  program["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = spec;
  EXPECT_NE(outcome_of("mlp", program), "");
  program = program_of("mlp");
  std::string expr = "Symbol('s77')";
  for (int i = 0; i < 100000; ++i) expr = "Add(" + expr;
  program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"] = expr;
  EXPECT_THAT(outcome_of("mlp", program), HasSubstr("is no expression"));
  EXPECT_NE(outcome(rewritten("mlp", {{"models/model.json", std::string(1000000, '[')}})), "");
}

TEST(UnknownProgram, AllOperatorsAreNamedAtOnce) {
  Json program = program_of("mlp");
  Json& nodes = program["graph_module"]["graph"]["nodes"];
  nodes[0]["target"] = "torch.ops.mylib.first.default";
  nodes[2]["target"] = "torch.ops.mylib.second.default";
  const std::string message = outcome_of("mlp", program);
  EXPECT_THAT(message, HasSubstr("torch.ops.mylib.first.default at 'linear'"));
  EXPECT_THAT(message, HasSubstr("torch.ops.mylib.second.default at 'linear_1'"));
}

TEST(UnknownProgram, NewerSchema) {
  Json program = program_of("mlp");
  program["schema_version"]["major"] = 9;
  EXPECT_THAT(outcome_of("mlp", program), HasSubstr("version 9 of torch.export's schema"));
}

// A class that nobody here knows is a tuple of its parts, and itself again in what is written.
TEST(UnknownProgram, ClassesAmongTheResults) {
  const std::string output = R"([1,{"children_spec":[{"children_spec":[],"context":null,"type":null}],)"
                             R"("context":"[[\"logits\"], []]","type":"transformers.Output"}])";
  Json program = program_of("mlp");
  program["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = output;
  const ScratchFolder scratch;
  const std::string path = scratch / "class.pt2", again = scratch / "again.pt2";
  std::ofstream(path, std::ios::binary) << rewritten("mlp", {{"models/model.json", program.dump()}});
  const auto gm = load_exported(path);
  EXPECT_TRUE(gm->graph().output_node()->arg(0).is_tuple());
  save_exported(*gm, again);
  caffe2::serialize::PyTorchStreamReader reader(again);
  const auto [data, size] = reader.getRecord("models/model.json");
  const Json written = Json::parse(std::string(static_cast<const char*>(data.get()), size));
  EXPECT_EQ(written["graph_module"]["module_call_graph"][0]["signature"]["out_spec"], output);
}

}  // namespace fx::hostile_test
