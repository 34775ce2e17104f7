#include "apps/msgrate/rail_report.hpp"

#include <cinttypes>
#include <cstdio>
#include <string>

#include "apps/common/rail_counts.hpp"

namespace rio::msgrate {

nlohmann::json rails_json(const msg::MessagePort& port) {
  nlohmann::json all = nlohmann::json::array();
  for (const msg::Rail* const rail : port.rails()) {
    nlohmann::json& json = all.emplace_back(nlohmann::json{{"card", rail->endpoint.name()}});
    apps::add_rail_counts(port.rail_stats(rail->index), &json);
  }
  return all;
}

void print_rails(const nlohmann::json& rails) {
  for (size_t i = 0; rails.size() > 1 && i < rails.size(); ++i) {
    const nlohmann::json& rail = rails[i];
    const auto count = [&](const char* name) { return rail[name].get<uint64_t>(); };
    std::printf("rail %zu, %s: %" PRIu64 " messages and %.1f MB sent, %" PRIu64
                " received, %" PRIu64 " sent once more, %" PRIu64 " moves, %" PRIu64 " downs\n",
                i, rail["card"].get<std::string>().c_str(), count("sent"),
                static_cast<double>(count("sent_bytes")) / 1e6, count("received"), count("again"),
                count("moves"), count("downs"));
  }
}

}  // namespace rio::msgrate
