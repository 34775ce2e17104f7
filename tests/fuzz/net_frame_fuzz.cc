// A card that sends any bytes to a port: messages to any mailbox, bundles whose headers are as
// valid as the input wants them, doorbells, from several destIDs. The port is one of EAL, with its
// mempools. Each frame that it delivers is a frame of its sender; after a stop all mbufs are back.
#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "base/log.hpp"
#include "pmd/card/open_card.hpp"
#include "pmd/net/bundle.hpp"

using namespace rio;

namespace {

constexpr uint32_t kPort = 0x100;
constexpr uint32_t kPeer = 0x200;
constexpr uint32_t kPeerQps = 4;
constexpr uint16_t kQueues = 2;
constexpr uint32_t kMtu = 9000;
constexpr uint32_t kTurns = 5000;  // the longest wait

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// The rest of the input.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  [[nodiscard]] bool empty() const { return at_ == end_; }
  uint8_t byte() { return empty() ? 0 : *at_++; }
  uint16_t word() {
    const uint16_t low = byte();
    return static_cast<uint16_t>(low | byte() << 8);
  }
  std::vector<uint8_t> bytes(size_t count) {
    count = std::min<size_t>(count, static_cast<size_t>(end_ - at_));
    std::vector<uint8_t> out(at_, at_ + count);
    at_ += static_cast<ptrdiff_t>(count);
    return out;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

/// The sending card.
class Peer {
 public:
  Peer() {
    const std::lock_guard guard(pmd::control_lock());
    pmd::CardArgs args;
    require(pmd::parse_devargs("peer", "wire=fuzz,destid=0x200,qps=4", name::Place::kDevice,
                               &args) == 0);
    require(pmd::open_emulated_card("peer", args, &card_) == 0);
    for (uint32_t qp = 0; qp < kPeerQps; ++qp) {
      pmd::QueuePairConfig config;
      config.rings = pmd::ring_bit(regs::Ring::kTx) | pmd::ring_bit(regs::Ring::kShared) |
                     pmd::ring_bit(regs::Ring::kDoorbell);
      require(card_->card()->open_queue_pair(qp, config, &pairs_[qp]) == 0);
    }
    require(card_->bus().dma_alloc((kBuffers + 1) * kPage, kPage, &memory_) == 0);
    for (uint64_t i = 0; i < kBuffers; ++i) {
      post(i);
    }
  }

  /// @return false: the message was not accepted.
  bool send(const std::vector<uint8_t>& bytes, uint8_t mbox, uint32_t qp) {
    if (bytes.empty() || bytes.size() > kPage) {
      return false;
    }
    std::memcpy(static_cast<uint8_t*>(memory_.va) + kBuffers * kPage, bytes.data(), bytes.size());
    pmd::TxMessage message{};
    message.iova = memory_.iova + kBuffers * kPage;
    message.dest_id = kPort;
    message.length_bytes = static_cast<uint16_t>(bytes.size());
    message.mbox = mbox;
    return pairs_[qp]->tx().burst(&message, 1) == 1;
  }
  bool ring(uint16_t info, uint32_t qp) {
    pmd::TxMessage message{};
    message.info = info;
    message.dest_id = kPort;
    message.flags = pmd::TxFlags::kDoorbell;
    return pairs_[qp]->tx().burst(&message, 1) == 1;
  }
  /// @return whether one of its messages or doorbells has completed.
  bool work() {
    bool ended = false;
    for (const auto& pair : pairs_) {
      pmd::TxDone done{};
      while (pair->tx().reap(&done, 1) == 1) {
        ended = true;
      }
    }
    pmd::RxMessage message{};
    while (pairs_[0]->shared().burst(&message, 1) == 1) {
      post(message.cookie);
    }
    pmd::DoorbellEvent event{};
    while (pairs_[0]->doorbells().burst(&event, 1) == 1) {
    }
    return ended;
  }

 private:
  static constexpr uint32_t kPage = 4096;
  static constexpr uint64_t kBuffers = 64;

  void post(uint64_t i) {
    const pmd::RxBuffer buffer{memory_.iova + i * kPage, i};
    require(pairs_[0]->shared().post(&buffer, 1) == 1);
  }

  std::shared_ptr<pmd::EalCard> card_;
  std::array<std::unique_ptr<pmd::QueuePair>, kPeerQps> pairs_;
  pmd::DmaMemory memory_{};
};

/// Lives as long as the process, since ports of EAL take long to create.
class World {
 public:
  World() {
    require(rte_vdev_init("net_rio0", "wire=fuzz,destid=0x100,peers=0x200,storm=0") == 0);
    require(rte_eth_dev_get_port_by_name("net_rio0", &port_) == 0);
    pool_ = rte_pktmbuf_pool_create("fuzz", 511, 0, 0, RTE_PKTMBUF_HEADROOM + 512, -1);
    require(pool_ != nullptr);
  }

  void run(Input input) {
    start(input.byte() % 2 == 0 ? 1 : kQueues);
    // Numbers and epoch continue: each input is a peer that has restarted.
    ++epoch_;
    numbers_.fill(0);
    while (!input.empty()) {
      one(&input);
    }
    serve();
    require(rte_eth_dev_stop(port_) == 0);
    require(rte_mempool_full(pool_) == 1);
  }

 private:
  void start(uint16_t queues) {
    if (queues != queues_) {
      queues_ = queues;
      rte_eth_conf conf{};
      conf.rxmode.mtu = kMtu;
      conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH;
      conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
      rte_eth_dev_info info{};
      require(rte_eth_dev_info_get(port_, &info) == 0);
      conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads;
      require(rte_eth_dev_configure(port_, queues, 1, &conf) == 0);
      for (uint16_t i = 0; i < queues; ++i) {
        require(rte_eth_rx_queue_setup(port_, i, 64, -1, nullptr, pool_) == 0);
      }
      require(rte_eth_tx_queue_setup(port_, 0, 64, -1, nullptr) == 0);
    }
    require(rte_eth_dev_start(port_) == 0);
  }
  /// Waits until its own messages have completed, whatever the port does with them.
  void finish(bool sent) {
    for (uint32_t turn = 0; sent && !peer_.work(); ++turn) {
      require(turn < kTurns);
      poll(8);
    }
  }
  void poll(uint16_t n) {
    rte_eth_tx_burst(port_, 0, nullptr, 0);
    for (uint16_t queue = 0; queue < queues_; ++queue) {
      rte_mbuf* frames[32];
      const uint16_t got = rte_eth_rx_burst(port_, queue, frames, n);
      for (uint16_t i = 0; i < got; ++i) {
        check(*frames[i]);
        rte_pktmbuf_free(frames[i]);
      }
    }
  }
  void check(const rte_mbuf& frame) {
    const char* why = nullptr;
    require(rte_mbuf_check(&frame, 1, &why) == 0);
    require(frame.pkt_len >= 14 && frame.pkt_len <= kMtu + 22);
    uint8_t buffer[kMtu + 22];
    const auto* const bytes =
        static_cast<const uint8_t*>(rte_pktmbuf_read(&frame, 0, frame.pkt_len, buffer));
    const uint8_t prefix[] = {0, 1, 0, 1};
    require(std::memcmp(bytes + 6, prefix, sizeof(prefix)) == 0);
    const uint32_t source = static_cast<uint32_t>(bytes[10]) << 8 | bytes[11];
    require(source >= kPeer && source < kPeer + kPeerQps);
    served_ |= frame.pkt_len == kMarkBytes && bytes[kMarkBytes - 1] == kMark;
  }

  /// A frame with valid headers, then bytes of the input.
  static std::vector<uint8_t> frame(uint32_t source, std::vector<uint8_t> rest) {
    const uint8_t head[] = {0, 1, 0, 1, kPort >> 8, kPort & 0xFF,
                            0, 1, 0, 1, kPeer >> 8, static_cast<uint8_t>((kPeer & 0xFF) + source)};
    rest.insert(rest.begin(), head, head + sizeof(head));
    return rest;
  }
  static void put(std::vector<uint8_t>* to, uint64_t word) {
    const auto* const at = reinterpret_cast<const uint8_t*>(&word);
    to->insert(to->end(), at, at + sizeof(word));
  }
  void bundle(Input* input, uint32_t qp) {
    const uint8_t kind = input->byte();
    const uint8_t items = kind % 8;
    uint16_t number = numbers_[qp]++;
    number = static_cast<uint16_t>(number + (kind / 8 % 4 == 3 ? input->word() : 0));
    std::vector<uint8_t> all;
    put(&all,
        pmd::BundleHeader{items, static_cast<uint16_t>(epoch_ + (kind >= 0xF0 ? 1 : 0)), number}
            .encode());
    for (uint32_t i = 0; i < items && !input->empty(); ++i) {
      const uint8_t how = input->byte();
      auto bytes = input->bytes(how % 32);
      bytes.resize(bytes.size() + (how >= 0xE0 ? input->byte() * 15u : 0));
      if (how % 64 < 48) {
        bytes = frame(how % 4 == 0 ? input->byte() % kPeerQps : qp, std::move(bytes));
      }
      const bool part = how / 32 % 2 == 1;
      const pmd::ItemHeader header = {
          static_cast<uint16_t>(how % 16 == 15 ? input->word() : bytes.size()),
          part ? input->word() : uint16_t{0}, part ? input->word() : uint16_t{0}};
      put(&all, header.encode());
      all.insert(all.end(), bytes.begin(), bytes.end());
      all.resize(pmd::padded_to_8(static_cast<uint32_t>(all.size())));
    }
    finish(peer_.send(all, 1, qp));
  }
  /// Sends a frame in parts, of valid lengths unless the input says otherwise.
  void parts(Input* input, uint32_t qp) {
    const uint32_t total = 20 + input->word() % kMtu;
    auto all = frame(qp, {});
    all.resize(total, 0x5A);
    for (uint32_t at = 0; at < total && !input->empty();) {
      const uint8_t how = input->byte();
      const uint32_t bytes = std::min({total - at, 14u + how * 16u, pmd::kItemBytesMax});
      std::vector<uint8_t> message;
      put(&message,
          pmd::BundleHeader{1, epoch_, static_cast<uint16_t>(numbers_[qp]++ + (how == 1 ? 1 : 0))}
              .encode());
      put(&message, pmd::ItemHeader{static_cast<uint16_t>(bytes), static_cast<uint16_t>(total),
                                    static_cast<uint16_t>(at + (how == 2 ? 1 : 0))}
                        .encode());
      message.insert(message.end(), all.begin() + at, all.begin() + at + bytes);
      finish(peer_.send(message, 1, qp));
      at += bytes;
    }
  }
  void one(Input* input) {
    const uint8_t what = input->byte();
    const uint32_t qp = what / 8u % kPeerQps;
    switch (what % 8) {
      case 0:
        finish(peer_.send(input->bytes(1 + input->byte()), input->byte() % 4, qp));
        break;
      case 1:
        finish(peer_.send(frame(qp, input->bytes(input->byte())), 0, qp));
        break;
      case 2:
      case 3:
        bundle(input, qp);
        break;
      case 4:
        parts(input, qp);
        break;
      case 5:
        finish(peer_.ring(
            what >= 128 ? static_cast<uint16_t>(0x1000 + input->byte()) : input->word(), qp));
        break;
      case 6:
        poll(input->byte() % 32);
        break;
      default:
        send(input);
    }
  }
  /// The port sends frames meanwhile, to peers that doorbells have announced.
  void send(Input* input) {
    rte_mbuf* const out = rte_pktmbuf_alloc(pool_);
    if (out == nullptr) {
      return;
    }
    const uint32_t length = 14 + input->byte() * 2u;
    auto* const bytes = rte_pktmbuf_mtod(out, uint8_t*);
    std::memset(bytes, 0, length);
    const uint8_t to[] = {0, 1, 0, 1, kPeer >> 8, kPeer & 0xFF};
    std::memset(bytes, 0xFF, 6);
    if (length % 4 != 0) {
      std::memcpy(bytes, to, sizeof(to));
    }
    out->data_len = static_cast<uint16_t>(length);
    out->pkt_len = length;
    rte_mbuf* frames[] = {out};
    if (rte_eth_tx_burst(port_, 0, frames, 1) != 1) {
      rte_pktmbuf_free(out);
    }
    poll(4);
  }
  /// A peer that has restarted and keeps the rules is served.
  void serve() {
    served_ = false;
    ++epoch_;
    for (uint32_t turn = 0; !served_; ++turn) {
      require(turn < kTurns);
      if (turn % 64 == 0) {
        auto bytes = frame(0, std::vector<uint8_t>(kMarkBytes - 12, kMark));
        std::vector<uint8_t> all;
        put(&all, pmd::BundleHeader{1, ++epoch_, 0}.encode());
        put(&all, pmd::ItemHeader{kMarkBytes, 0, 0}.encode());
        all.insert(all.end(), bytes.begin(), bytes.end());
        all.resize(pmd::padded_to_8(static_cast<uint32_t>(all.size())));
        finish(peer_.send(all, 1, 0));
      }
      poll(32);
      peer_.work();
    }
  }

  static constexpr uint16_t kMarkBytes = 301;
  static constexpr uint8_t kMark = 0xC7;

  uint16_t port_ = 0;
  uint16_t queues_ = 0;
  rte_mempool* pool_ = nullptr;
  Peer peer_;
  uint16_t epoch_ = 0;
  std::array<uint16_t, kPeerQps> numbers_{};
  bool served_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  base::set_log_sink([](base::LogLevel, const char*) noexcept {});
  const char* args[] = {"fuzz",        "--no-huge",      "-m",
                        "128",         "--no-pci",       "--iova-mode=va",
                        "--no-shconf", "--no-telemetry", "--log-level=error"};
  require(rte_eal_init(static_cast<int>(std::size(args)), const_cast<char**>(args)) >= 0);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World* const world = new World;
  world->run(Input(data, size));
  return 0;
}
