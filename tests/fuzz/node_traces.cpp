// Traces of nodes and lists of sacct, as `simulate --trace` reads them; what is read is replayed.
#include "forecast/simulate/node_source.hpp"
#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(t3d::test::as_text(data, bytes));
  t3d::test::expect_answer([&] {
    const t3d::NodeTrace trace = t3d::parse_any_trace(text, "f");
    const auto source = t3d::replayed_nodes(trace, {100}, 0.5 * trace.seconds);
    std::vector<t3d::NodeEvent> events;
    source->begin(0, events);
    for (int moment = 0; moment < 100; ++moment) source->take(events);
    t3d::index_t nodes = 0;
    for (const t3d::NodeEvent& event : events) nodes += event.change;
    if (nodes < 0 || nodes > 100) std::abort();
  });
  return 0;
}
