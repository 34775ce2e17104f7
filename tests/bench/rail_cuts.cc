// Goodput over time between two hosts with several rails in virtual time, while rails are cut and
// mended: how long a rail that is back takes to carry its share, and what a rail that comes and
// goes costs the other one.
#include <CLI/CLI.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/tag/tagged_context.hpp"
#include "tests/bench/virtual_link.hpp"
#include "tests/support/virtual_hosts.hpp"

namespace rio::bench {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
constexpr uint16_t kContext = 1;
constexpr uint64_t kBits = 5;

struct Options {
  double link_mb_per_s = 25;
  uint32_t rails = 2;
  uint64_t bytes = 1 << 20;
  uint32_t window = 16;
  uint64_t ms = 8000;
  uint64_t bin_ms = 50;
  uint32_t timeout_us = 100'000;
  uint64_t down_ms = 0;   // when the last rail is cut
  uint64_t up_ms = 0;     // when it is mended
  uint64_t every_ms = 0;  // 0: once; else it is cut again so long after each cut
};

[[noreturn]] void die(const char* what, int error) {
  std::fprintf(stderr, "rail_cuts: error: %s: %s\n", what, std::strerror(std::abs(error)));
  std::exit(1);
}

/// Host 0 sends messages to host 1 without an end.
class Stream {
 public:
  explicit Stream(const Options& options);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Let time pass. @return bytes of messages that were put into place meanwhile.
  [[nodiscard]] uint64_t run_ms(uint64_t ms);
  /// Cut or mend the cable of the last rail after some time.
  void set_cable(bool is_up, uint64_t after_ms);

 private:
  struct End {
    std::unique_ptr<msg::MessagePort> port;
    std::unique_ptr<tag::TaggedContext> context;
    uint64_t activity = 0;
  };

  [[nodiscard]] uint32_t turn(uint32_t host);
  [[nodiscard]] tag::Address address(uint32_t host) const {
    return tag::address(test::VirtualHosts::id(host * options_.rails), kContext);
  }
  void set_link(uint32_t from, uint32_t to, bool is_up, uint64_t at_ns);

  const Options options_;
  std::unique_ptr<test::VirtualHosts> hosts_;
  std::array<End, 2> ends_;
  Pages from_;
  std::vector<Pages> to_;
  std::vector<tag::SendRequest> sends_;
  std::vector<tag::RecvRequest> receives_;
};

Stream::Stream(const Options& options)
    : options_(options), from_(options.bytes), sends_(options.window), receives_(options.window) {
  LinkPlan link;
  link.link_mb_per_s = options.link_mb_per_s;
  test::VirtualHostsSettings settings;
  settings.topology = "mesh:" + std::to_string(options.rails) + "x2";
  settings.network.cards_per_host = options.rails;
  settings.network.network.classes = {link_class(link)};
  settings.poll_ns = 20'000;
  std::string error;
  if (const int rc = test::VirtualHosts::create(settings, &hosts_, &error); rc != 0) {
    die(error.c_str(), rc);
  }
  for (uint32_t node = 0; node < 2 * options.rails; ++node) {
    if ((node + 1) % options.rails != 0) {
      set_link(node, node + 1, false, 1);  // each rail is a network of its own
    }
  }
  msg::PortConfig config;
  config.response_timeout_us = options.timeout_us;
  for (uint32_t host = 0; host < ends_.size(); ++host) {
    int rc = hosts_->open(host, config, &ends_[host].port);
    rc = rc != 0
             ? rc
             : tag::TaggedContext::create(*ends_[host].port, kContext, {}, &ends_[host].context);
    if (rc != 0) {
      die("cannot open a port", rc);
    }
  }
  for (uint32_t i = 0; i < options.window; ++i) {
    to_.emplace_back(options.bytes);
  }
}

Stream::~Stream() {
  for (End& end : ends_) {
    end.context.reset();
  }
  for (End& end : ends_) {
    end.port.reset();
  }
}

void Stream::set_link(uint32_t from, uint32_t to, bool is_up, uint64_t at_ns) {
  sim::NetworkBase& network = hosts_->network().network();
  const sim::FaultKind kind = is_up ? sim::FaultKind::kLinkUp : sim::FaultKind::kLinkDown;
  const uint32_t link = network.topology().next_link(from, to);
  network.schedule({.at_ns = at_ns, .kind = kind, .target = link});
  network.schedule({.at_ns = at_ns, .kind = kind, .target = network.topology().reverse(link)});
}

void Stream::set_cable(bool is_up, uint64_t after_ms) {
  set_link(options_.rails - 1, 2 * options_.rails - 1, is_up,
           hosts_->network().now_ns() + after_ms * kMsNs);
}

uint32_t Stream::turn(uint32_t host) {
  End& end = ends_[host];
  end.context->progress();
  uint32_t things = end.port->activity() != end.activity ? 1 : 0;
  end.activity = end.port->activity();
  while (const tag::Request* const done = end.context->next_done()) {
    ++things;
    if (done->status != 0) {
      die(done->is_receive ? "receive" : "send", done->status);
    }
  }
  for (uint32_t i = 0; i < options_.window; ++i) {
    tag::Request& request = host == 0 ? static_cast<tag::Request&>(sends_[i]) : receives_[i];
    if (request.stage != tag::Stage::kIdle) {
      continue;
    }
    const tag::Pattern pattern = {.bits = kBits, .source = address(0)};
    const int rc =
        host == 0 ? end.context->send(address(1), kBits, from_.data(), options_.bytes, sends_[i])
                  : end.context->receive(pattern, to_[i].data(), options_.bytes, receives_[i]);
    if (rc < 0) {
      die("a message cannot begin", rc);
    }
    ++things;
  }
  return things;
}

uint64_t Stream::run_ms(uint64_t ms) {
  const uint64_t before = ends_[1].port->stats().placed + ends_[1].port->stats().copied;
  const auto never = [] { return false; };
  static_cast<void>(hosts_->run([this](uint32_t host) { return turn(host); }, never, ms * kMsNs));
  return ends_[1].port->stats().placed + ends_[1].port->stats().copied - before;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Goodput over time between two hosts in virtual time, while a rail is cut: JSON.");
  app.add_option("--link-mb", options.link_mb_per_s, "MB/s of all bytes on each link")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e5));
  app.add_option("--rails", options.rails, "cards of each host")
      ->capture_default_str()
      ->check(CLI::Range(1, 8));
  app.add_option("--bytes", options.bytes, "bytes of a message")
      ->capture_default_str()
      ->check(CLI::Range(1, 64 << 20));
  app.add_option("--window", options.window, "messages under way")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--ms", options.ms, "how long to measure")->capture_default_str();
  app.add_option("--bin-ms", options.bin_ms, "of each figure")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  app.add_option("--timeout-us", options.timeout_us, "response time-out")->capture_default_str();
  app.add_option("--down-ms", options.down_ms, "when the last rail is cut")->capture_default_str();
  app.add_option("--up-ms", options.up_ms, "when it is mended; 0: it is not cut")
      ->capture_default_str();
  app.add_option("--every-ms", options.every_ms, "cut it again so long after each cut; 0: never")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  Stream stream(options);
  constexpr uint64_t kWarmMs = 1000;
  static_cast<void>(stream.run_ms(kWarmMs));  // the session begins, the paths are found
  for (uint64_t at_ms = 0; options.up_ms != 0 && at_ms < options.ms; at_ms += options.every_ms) {
    stream.set_cable(false, at_ms + options.down_ms);
    stream.set_cable(true, at_ms + options.up_ms);
    if (options.every_ms == 0) {
      break;
    }
  }
  std::printf("{\"bin_ms\": %llu, \"mb_per_s\": [",
              static_cast<unsigned long long>(options.bin_ms));
  for (uint64_t at_ms = 0; at_ms < options.ms; at_ms += options.bin_ms) {
    const auto bytes = static_cast<double>(stream.run_ms(options.bin_ms));
    std::printf("%s%.3f", at_ms == 0 ? "" : ", ",
                bytes / 1e3 / static_cast<double>(options.bin_ms));
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace
}  // namespace rio::bench

int main(int argc, char** argv) {
  return rio::bench::run(argc, argv);
}
