#include <fxgraph/cli/model.h>

#include <fxgraph/cli/options.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::cli {

namespace {

class TextModel : public Model {
 public:
  explicit TextModel(Graph graph) : graph_(std::move(graph)) {}
  Graph& graph() override { return graph_; }
  Shapes propagate_shapes(const InputOptions&) override { needs_torch("shapes"); }
  OpenProgram at_open_sizes(const std::vector<TensorInfo>&) override { needs_torch("shapes"); }
  NodeTimes times(const InputOptions&) override { needs_torch("times"); }
  double difference(Model&, const InputOptions&, int) override { needs_torch("verifying"); }

  void save(const std::string& path, const InputOptions&) override {
    if (form_of(path, ProgramForm::text) != ProgramForm::text) {
      throw Error(ErrorKind::unsupported,
                  "cannot write " + path + ": FX text has no weights to save; end the name in .fx");
    }
    write_output(path, print_graph(graph_));
  }

 private:
  [[noreturn]] static void needs_torch(const std::string& what) {
    throw Error(ErrorKind::unsupported,
                what + " needs LibTorch; build with FXGRAPH_WITH_TORCH=ON and install fxgraph-torch");
  }
  Graph graph_;
};

}  // namespace

std::unique_ptr<Model> load_model(const std::string& path, Backend* backend, const InputOptions& inputs) {
  if (backend) return backend->load(path, inputs);
  if (is_archive(path)) {
    throw Error(ErrorKind::unsupported,
                path +
                    ": reading a file with weights needs LibTorch; build with FXGRAPH_WITH_TORCH=ON and install "
                    "fxgraph-torch");
  }
  return std::make_unique<TextModel>(load_graph_text(path));
}

}  // namespace fx::cli
