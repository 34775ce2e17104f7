#include "apps/tool/top_rails.hpp"

#include <algorithm>

#include "apps/common/rail_counts.hpp"
#include "base/number.hpp"
#include "lib/msg/rail_page.hpp"

namespace rio::tool {
namespace {

/// @return 0 also if the count shrank, or no time has passed.
[[nodiscard]] double rate(uint64_t before, uint64_t now, uint64_t took_ns) {
  return now < before || took_ns == 0
             ? 0
             : static_cast<double>(now - before) * 1e9 / static_cast<double>(took_ns);
}

void set_rates(const TopMessagePort& before, TopMessagePort* now) {
  const uint64_t took_ns = now->time_ns - before.time_ns;
  for (size_t i = 0; i < now->rails.size(); ++i) {
    const TopRail& old = before.rails[i];
    TopRail& rail = now->rails[i];
    if (took_ns == 0) {
      rail = old;
      continue;
    }
    rail.sent_per_s = rate(old.stats.sent, rail.stats.sent, took_ns);
    rail.sent_bytes_per_s = rate(old.stats.sent_bytes, rail.stats.sent_bytes, took_ns);
    rail.received_per_s = rate(old.stats.received, rail.stats.received, took_ns);
    rail.received_bytes_per_s = rate(old.stats.received_bytes, rail.stats.received_bytes, took_ns);
  }
}

[[nodiscard]] bool is_same(const TopMessagePort& one, const TopMessagePort& other) {
  return one.pid == other.pid && one.dest_id == other.dest_id && one.time_ns != 0 &&
         one.time_ns <= other.time_ns &&
         std::equal(one.rails.begin(), one.rails.end(), other.rails.begin(), other.rails.end(),
                    [](const TopRail& a, const TopRail& b) { return a.card == b.card; });
}

}  // namespace

std::vector<TopMessagePort> read_message_ports(const std::vector<TopMessagePort>& before) {
  std::vector<TopMessagePort> all;
  for (const msg::PortRails& read : msg::read_rail_pages()) {
    TopMessagePort& port = all.emplace_back();
    port = {read.pid, read.dest_id, read.time_ns, {}};
    for (const msg::PortRails::Row& row : read.rails) {
      port.rails.push_back({base::printable(row.card), row.stats});
    }
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&](const TopMessagePort& one) { return is_same(one, port); });
    if (old != before.end()) {
      set_rates(*old, &port);
    }
  }
  return all;
}

static void to_json(Json& json, const TopRail& rail) {
  json = {{"card", rail.card}};
  apps::add_rail_counts(rail.stats, &json);
  json.update(Json{{"remote", rail.stats.remote},
                   {"remote_bytes", rail.stats.remote_bytes},
                   {"sent_per_second", rail.sent_per_s},
                   {"sent_bytes_per_second", rail.sent_bytes_per_s},
                   {"received_per_second", rail.received_per_s},
                   {"received_bytes_per_second", rail.received_bytes_per_s}});
}

static void to_json(Json& json, const TopMessagePort& port) {
  json = {{"pid", port.pid}, {"dest_id", port.dest_id}, {"rails", port.rails}};
}

Json message_ports_json(const std::vector<TopMessagePort>& ports) {
  return ports;
}

std::string message_ports_text(const std::vector<TopMessagePort>& ports) {
  if (ports.empty()) {
    return "";
  }
  TextTable table({"pid", "destID", "rail", "card", "peers up", "sent/s", "bytes/s", "received/s",
                   "bytes/s", "failed", "again", "moves", "downs"});
  for (const TopMessagePort& port : ports) {
    for (size_t i = 0; i < port.rails.size(); ++i) {
      const TopRail& rail = port.rails[i];
      const msg::RailStats& stats = rail.stats;
      table.add(
          {std::to_string(port.pid), std::to_string(port.dest_id), std::to_string(i), rail.card,
           stats.gone != 0 ? "GONE"
                           : std::to_string(stats.paths_up) + "/" + std::to_string(stats.paths),
           short_number(rail.sent_per_s), short_number(rail.sent_bytes_per_s),
           short_number(rail.received_per_s), short_number(rail.received_bytes_per_s),
           std::to_string(stats.failed), std::to_string(stats.again), std::to_string(stats.moves),
           std::to_string(stats.downs)});
    }
  }
  return "message ports with several rails\n" + table.text();
}

}  // namespace rio::tool
