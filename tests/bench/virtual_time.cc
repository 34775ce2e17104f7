// Bandwidth and latency of tagged messages between two hosts in virtual time: the real message
// library and driver on model cards, whose link has a rate, and whose hosts have a bus. The figures
// show protocol and card; a host takes no time unless --host-ns says so.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/virtual_link.hpp"

namespace rio::bench {
namespace {

struct Options {
  LinkPlan link;
  uint64_t from_bytes = 1;
  uint64_t to_bytes = 4 << 20;
  uint64_t stream_bytes = 16 << 20;
  uint32_t window = 16;
  uint32_t round_trips = 20;
  uint32_t flows = 1;
  bool both_ways = false;
  bool json = false;
};

struct Row {
  uint64_t bytes;
  uint32_t messages;
  double mb_per_s;
  double part;  // of the payload peak
  double latency_us;
};

[[nodiscard]] Row measure(const Options& options, uint64_t bytes) {
  const auto messages = static_cast<uint32_t>(
      std::clamp<uint64_t>(options.stream_bytes / bytes, 2 * options.window, 4096));
  VirtualLink link(options.link, bytes, options.window);
  link.meet();
  const auto stream_ns =
      static_cast<double>(link.stream_ns(bytes, messages, options.flows, options.both_ways));
  const auto trip_ns = static_cast<double>(link.ping_pong_ns(bytes, options.round_trips));
  const double bytes_per_s = static_cast<double>(bytes) * messages * 1e9 / stream_ns;
  return {.bytes = bytes,
          .messages = messages,
          .mb_per_s = bytes_per_s / 1e6,
          .part = bytes_per_s / payload_peak(link_class(options.link)),
          .latency_us = trip_ns / (2e3 * options.round_trips)};
}

void print_json(const Options& options, const std::vector<Row>& rows) {
  std::printf("{\"payload_peak_mb_per_s\": %.3f, \"window\": %u, \"rows\": [",
              payload_peak(link_class(options.link)) / 1e6, options.window);
  const char* comma = "";
  for (const Row& row : rows) {
    std::printf(
        "%s\n {\"bytes\": %llu, \"messages\": %u, \"mb_per_s\": %.4f, \"part\": %.5f, "
        "\"latency_us\": %.3f}",
        comma, static_cast<unsigned long long>(row.bytes), row.messages, row.mb_per_s, row.part,
        row.latency_us);
    comma = ",";
  }
  std::printf("\n]}\n");
}

void print_table(const Options& options, const std::vector<Row>& rows) {
  std::printf("payload peak %.1f MB/s, window %u\n%10s %10s %8s %10s\n",
              payload_peak(link_class(options.link)) / 1e6, options.window, "bytes", "MB/s",
              "of peak", "us one way");
  for (const Row& row : rows) {
    std::printf("%10llu %10.2f %8.3f %10.2f\n", static_cast<unsigned long long>(row.bytes),
                row.mb_per_s, row.part, row.latency_us);
  }
}

void add_options(CLI::App& app, Options* to) {
  LinkPlan& link = to->link;
  app.add_option("--link-mb", link.link_mb_per_s, "MB/s of all bytes on the link")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e5));
  app.add_option("--packet-bytes", link.packet_bytes, "bytes of a packet besides its payload")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 4096.0));
  app.add_option("--packet-ns", link.packet_ns, "time of the card for each packet, link idle")
      ->capture_default_str();
  app.add_option("--hop-ns", link.hop_ns, "delay of the link")->capture_default_str();
  app.add_option("--bus-read-mb", link.bus_read_mb_per_s, "MB/s that cards read; 0: no bus")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e5));
  app.add_option("--bus-write-mb", link.bus_write_mb_per_s, "MB/s that cards write; 0: no bus")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e5));
  app.add_option("--host-ns", link.host_ns,
                 "time of a host for each message that it begins or ends")
      ->capture_default_str();
  app.add_option("--poll-ns", link.poll_ns, "time between polls of a host whose card is silent")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--rails", link.rails, "cards of each host, each with a link")
      ->capture_default_str()
      ->check(CLI::Range(1u, msg::kRailsMax));
  app.add_option("--policy", link.policy, "weighted, dynamic, static or unidirectional");
  app.add_option("--from", to->from_bytes, "smallest message, in bytes; then powers of two")
      ->capture_default_str()
      ->check(CLI::Range(1, 64 << 20));
  app.add_option("--to", to->to_bytes, "largest message")
      ->capture_default_str()
      ->check(CLI::Range(1, 64 << 20));
  app.add_option("--bytes", to->stream_bytes, "bytes of a stream, of 2 windows to 4096 messages")
      ->capture_default_str();
  app.add_option("--window", to->window, "messages under way")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--round-trips", to->round_trips, "of the latency's test")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_flag("--both-ways", to->both_ways, "streams in the other direction, too");
  app.add_option("--flows", to->flows, "streams in each direction; MB/s are of each")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  app.add_flag("--json", to->json, "print JSON");
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Bandwidth and latency between two hosts in virtual time: the message library on "
      "model cards.");
  add_options(app, &options);
  CLI11_PARSE(app, argc, argv);
  std::vector<Row> rows;
  for (uint64_t bytes = options.from_bytes; bytes <= options.to_bytes; bytes *= 2) {
    rows.push_back(measure(options, bytes));
  }
  (options.json ? print_json : print_table)(options, rows);
  return 0;
}

}  // namespace
}  // namespace rio::bench

int main(int argc, char** argv) {
  return rio::bench::run(argc, argv);
}
