#include "tests/eal/net_worker.hpp"

#include <poll.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string>

namespace rio::test {
namespace {

constexpr const char* kPool = "net_multi";
constexpr uint32_t kMbufs = 4095;
constexpr uint16_t kQueues = 2;

void say(const std::string& line) {
  const std::string text = line + "\n";
  (void)!write(STDOUT_FILENO, text.data(), text.size());
}

/// The payload of a frame.
struct Mark {
  uint32_t role;
  uint32_t index;
  uint32_t has_order;  ///< 0: the frame may travel alone, without a bundle, and overtake others
};
constexpr uint32_t kMarkAt = 42;

class NetWorker {
 public:
  explicit NetWorker(bool primary) : queue_(primary ? 0 : 1), has_met_(!primary) {
    for (uint16_t i = 0; i < 2; ++i) {
      ok &= rte_eth_dev_get_port_by_name(i == 0 ? "net_rio0" : "net_rio1", &ports_[i]) == 0;
    }
    pool_ = primary ? rte_pktmbuf_pool_create(kPool, kMbufs, 0, 0, 2048 + 128, -1)
                    : rte_mempool_lookup(kPool);
    ok &= pool_ != nullptr;
    for (const uint16_t port : ports_) {
      ok = ok && (!primary || set_up(port));
    }
    for (uint16_t i = 0; i < 2; ++i) {
      ok &= rte_eth_macaddr_get(ports_[i], &macs_[i]) == 0;
    }
  }

  void turn() {
    for (uint16_t i = 0; i < 2; ++i) {
      receive(i, queue_);
      send(i);
    }
  }
  /// Waits until both ports get bundles. The secondary does not exist yet: if its queue filled up,
  /// it would hold up the other queue's frames.
  bool meet() {
    for (uint32_t i = 0; i < 10'000 && !has_met_; ++i) {
      turn();
      receive(0, 1 - queue_);
      receive(1, 1 - queue_);
      usleep(1000);
      has_met_ = count("rx_bundles", 0) != 0 && count("rx_bundles", 1) != 0;
    }
    return has_met_;
  }
  std::string obey(const std::string& command) {
    if (command == "count") {
      const uint64_t overtaken = any_late() ? 0 : overtaken_;
      return "count " + std::to_string(frames_) + " " + std::to_string(errors_ + overtaken);
    }
    if (command == "stats") {
      return "stats " + std::to_string(stats());
    }
    if (command == "control") {
      return "control " + std::to_string(control());
    }
    if (command == "hold") {
      std::array<rte_mbuf*, kHeld> held{};
      stopped_ = true;  // a process that dies in a burst leaves the queue taken
      return "held " + std::to_string(rte_pktmbuf_alloc_bulk(pool_, held.data(), kHeld));
    }
    if (command == "stop") {
      stop();
      return "stopped " + std::to_string(rte_mempool_in_use_count(pool_));
    }
    return "?";
  }
  void stop() {
    for (const uint16_t port : ports_) {
      errors_ += rte_eth_dev_stop(port) == 0 ? 0 : 1;
    }
    stopped_ = true;
  }
  [[nodiscard]] bool stopped() const { return stopped_; }
  bool ok = true;

 private:
  bool set_up(uint16_t port) {
    rte_eth_conf conf{};
    conf.rxmode.mtu = 1500;
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IPV4;
    int rc = rte_eth_dev_configure(port, kQueues, kQueues, &conf);
    for (uint16_t i = 0; i < kQueues; ++i) {
      rc |= rte_eth_rx_queue_setup(port, i, 256, -1, nullptr, pool_);
      rc |= rte_eth_tx_queue_setup(port, i, 256, -1, nullptr);
    }
    return rc == 0 && rte_eth_dev_start(port) == 0;
  }
  /// Makes a frame. @return null: there is no mbuf.
  rte_mbuf* make(uint16_t i) {
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool_);
    if (frame == nullptr) {
      return nullptr;
    }
    const uint32_t length = 60 + next_[i] * 37 % 1400;
    frame->data_len = static_cast<uint16_t>(length);
    frame->pkt_len = length;
    auto* const bytes = rte_pktmbuf_mtod(frame, uint8_t*);
    std::memset(bytes, static_cast<int>(next_[i] & 0xFF), length);
    std::copy_n(macs_[1 - i].addr_bytes, 6, bytes);
    std::copy_n(macs_[i].addr_bytes, 6, bytes + 6);
    std::memset(bytes + 12, 0, 30);
    bytes[12] = 0x08;
    bytes[14] = 0x45;
    bytes[29] = static_cast<uint8_t>(next_[i] / 64);  // flows for both queues
    const Mark mark = {queue_, next_[i], has_met_ ? 1u : 0u};
    std::memcpy(bytes + kMarkAt, &mark, sizeof(mark));
    return frame;
  }
  void send(uint16_t i) {
    rte_mbuf* frames[kBurst];
    uint16_t count = 0;
    while (count < kBurst && (frames[count] = make(i)) != nullptr) {
      ++count;
      ++next_[i];
    }
    const uint16_t sent = rte_eth_tx_burst(ports_[i], queue_, frames, count);
    for (uint16_t left = sent; left < count; ++left) {
      rte_pktmbuf_free(frames[left]);
    }
  }
  /// Frames of both processes arrive at both queues, since the table looks at the flow only.
  void receive(uint16_t i, uint16_t queue) {
    rte_mbuf* got[kBurst];
    const uint16_t n = rte_eth_rx_burst(ports_[i], queue, got, kBurst);
    for (uint16_t k = 0; k < n; ++k) {
      check(i, *got[k]);
    }
    rte_pktmbuf_free_bulk(got, n);
    frames_ += n;
  }
  void check(uint16_t i, const rte_mbuf& frame) {
    Mark mark{};
    if (frame.pkt_len < kMarkAt + sizeof(mark) || frame.nb_segs != 1) {
      ++errors_;
      return;
    }
    const auto* const bytes = rte_pktmbuf_mtod(&frame, const uint8_t*);
    std::memcpy(&mark, bytes + kMarkAt, sizeof(mark));
    const bool known = mark.role < kQueues;
    const uint8_t fill = static_cast<uint8_t>(mark.index);
    const bool right = std::all_of(bytes + kMarkAt + sizeof(mark), bytes + 60,
                                   [fill](uint8_t byte) { return byte == fill; });
    errors_ += known && right ? 0 : 1;
    if (mark.has_order == 0) {
      return;
    }
    uint32_t& wanted = wanted_[i][known ? mark.role : 0];
    overtaken_ += mark.index >= wanted ? 0 : 1;
    wanted = mark.index + 1;
  }
  /// Reads the counts of both ports. @return 0: they can be read, and frames have arrived.
  int stats() {
    for (const uint16_t port : ports_) {
      rte_eth_stats stats{};
      if (rte_eth_stats_get(port, &stats) != 0 || stats.ipackets == 0 || stats.opackets == 0) {
        return 1;
      }
      uint64_t id = 0;
      uint64_t value = 0;
      if (rte_eth_xstats_get_id_by_name(port, "rx_frames", &id) != 0 ||
          rte_eth_xstats_get_by_id(port, &id, &value, 1) != 1 || value < stats.ipackets) {
        return 2;
      }
      rte_eth_link link{};
      if (rte_eth_link_get_nowait(port, &link) != 0 || link.link_status != RTE_ETH_LINK_UP) {
        return 3;
      }
      rte_eth_dev_info info{};
      if (rte_eth_dev_info_get(port, &info) != 0 || info.max_mtu != 65513) {
        return 4;
      }
    }
    return 0;
  }
  /// A bundle is not awaited for ever: later ones may be out of order.
  bool any_late() { return count("rx_late", 0) + count("rx_late", 1) != 0; }
  uint64_t count(const char* name, uint16_t i) {
    uint64_t id = 0;
    uint64_t value = 0;
    errors_ += rte_eth_xstats_get_id_by_name(ports_[i], name, &id) == 0 &&
                       rte_eth_xstats_get_by_id(ports_[i], &id, &value, 1) == 1
                   ? 0
                   : 1;
    return value;
  }
  int control() {
    for (const uint16_t port : ports_) {
      if (rte_eth_dev_set_mtu(port, 1000) != -ENOTSUP) {
        return 1;
      }
    }
    return 0;
  }

  uint16_t queue_;
  bool has_met_;  // both ports know that the other one takes bundles
  std::array<uint16_t, 2> ports_{};
  std::array<rte_ether_addr, 2> macs_{};
  rte_mempool* pool_ = nullptr;
  std::array<uint32_t, 2> next_{};
  uint32_t wanted_[2][kQueues] = {};
  uint64_t frames_ = 0;
  uint64_t errors_ = 0;
  uint64_t overtaken_ = 0;
  bool stopped_ = false;
};

}  // namespace

int run_net_worker(bool primary) {
  NetWorker worker(primary);
  worker.ok = worker.ok && (!primary || worker.meet());
  say(worker.ok ? "ready" : "not ready");
  std::string input;
  for (uint32_t turn = 0; worker.ok; ++turn) {
    if (!worker.stopped()) {
      worker.turn();
    }
    pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&in, 1, turn % 16 == 0 ? 1 : 0) <=
        0) {  // the two processes share two CPUs with the cards
      continue;
    }
    char bytes[256];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n <= 0) {
      return 1;
    }
    input.append(bytes, static_cast<size_t>(n));
    for (size_t end = input.find('\n'); end != std::string::npos; end = input.find('\n')) {
      const std::string line = input.substr(0, end);
      input.erase(0, end + 1);
      if (line == "end") {
        if (primary && !worker.stopped()) {
          worker.stop();
        }
        say("ended");
        return 0;
      }
      say(worker.obey(line));
    }
  }
  return 1;
}

}  // namespace rio::test
