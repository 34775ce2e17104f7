#include "tests/eal/net_port.hpp"

#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "pmd/raw/rte_raw_rio.h"

namespace rio::test {

const rte_ether_addr kEverybody = {{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};

Device::Device(const std::string& name, const std::string& args) : name_(name) {
  EXPECT_EQ(rte_vdev_init(name.c_str(), args.c_str()), 0) << name << " " << args;
}

Device::~Device() {
  EXPECT_EQ(rte_vdev_uninit(name_.c_str()), 0) << name_;
}

Pool::Pool(uint32_t room_bytes, uint32_t count, uint16_t priv_bytes) {
  static uint32_t number = 0;
  pool_ = rte_pktmbuf_pool_create(("test" + std::to_string(number++)).c_str(), count, 0, priv_bytes,
                                  static_cast<uint16_t>(room_bytes + RTE_PKTMBUF_HEADROOM), -1);
  EXPECT_NE(pool_, nullptr) << rte_strerror(rte_errno);
}

Pool::~Pool() {
  EXPECT_TRUE(full()) << rte_mempool_in_use_count(pool_) << " mbufs did not come back";
  rte_mempool_free(pool_);
}

Bytes frame_bytes(const rte_ether_addr& to, const rte_ether_addr& from, uint32_t bytes,
                  uint32_t seed) {
  Bytes all(std::max<uint32_t>(bytes, 14));
  std::copy_n(to.addr_bytes, 6, all.begin());
  std::copy_n(from.addr_bytes, 6, all.begin() + 6);
  all[12] = 0x08;
  for (uint32_t i = 14; i < bytes; ++i) {
    all[i] = static_cast<uint8_t>(i * 3 + (i >> 8) + bytes + seed * 151 + (seed >> 8));
  }
  all.resize(bytes);
  return all;
}

rte_ether_addr address(uint32_t dest_id) {
  return {{0, 1, 0, 1, static_cast<uint8_t>(dest_id >> 8), static_cast<uint8_t>(dest_id)}};
}

Port::Port(const std::string& name, const Pool& pool, const PortConf& wanted) : pool_(pool) {
  EXPECT_EQ(rte_eth_dev_get_port_by_name(name.c_str(), &id_), 0) << name;
  rte_eth_conf conf{};
  conf.rxmode.mtu = wanted.mtu;
  conf.rxmode.offloads = (wanted.scatter ? RTE_ETH_RX_OFFLOAD_SCATTER : 0) |
                         (wanted.rss != 0 ? RTE_ETH_RX_OFFLOAD_RSS_HASH : 0);
  conf.rxmode.mq_mode = wanted.rss != 0 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
  conf.rx_adv_conf.rss_conf.rss_hf = wanted.rss;
  conf.intr_conf.rxq = wanted.rx_irq ? 1 : 0;
  conf.txmode.offloads =
      wanted.fast_free ? RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE : RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  EXPECT_EQ(rte_eth_dev_configure(id_, wanted.rx_queues, wanted.tx_queues, &conf), 0);
  for (uint16_t i = 0; i < wanted.rx_queues; ++i) {
    EXPECT_EQ(rte_eth_rx_queue_setup(id_, i, wanted.entries, -1, nullptr, pool.get()), 0);
  }
  for (uint16_t i = 0; i < wanted.tx_queues; ++i) {
    EXPECT_EQ(rte_eth_tx_queue_setup(id_, i, wanted.entries, -1, nullptr), 0);
  }
  start();
}

void Port::start() {
  EXPECT_EQ(rte_eth_dev_start(id_), 0);
  started_ = true;
  EXPECT_EQ(rte_eth_macaddr_get(id_, &mac_), 0);
}

void Port::stop() {
  if (std::exchange(started_, false)) {
    EXPECT_EQ(rte_eth_dev_stop(id_), 0);
  }
}

rte_mbuf* Port::make(const Bytes& bytes, const std::vector<uint32_t>& cuts, uint32_t shift) const {
  rte_mbuf* first = nullptr;
  rte_mbuf* last = nullptr;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const uint32_t at = i == 0 ? 0 : cuts[i - 1];
    const uint32_t end = i == cuts.size() ? static_cast<uint32_t>(bytes.size()) : cuts[i];
    rte_mbuf* const part = rte_pktmbuf_alloc(pool_.get());
    if (part == nullptr) {
      ADD_FAILURE() << "no mbuf";
      return first;
    }
    part->data_off = static_cast<uint16_t>(part->data_off + shift);
    EXPECT_LE(end - at, rte_pktmbuf_tailroom(part));
    part->data_len = static_cast<uint16_t>(end - at);
    std::copy_n(bytes.data() + at, end - at, rte_pktmbuf_mtod(part, uint8_t*));
    (last == nullptr ? first : last->next) = part;
    last = part;
  }
  first->nb_segs = static_cast<uint16_t>(cuts.size() + 1);
  first->pkt_len = static_cast<uint32_t>(bytes.size());
  return first;
}

bool Port::send(rte_mbuf* frame, uint16_t queue) const {
  const bool taken = rte_eth_tx_burst(id_, queue, &frame, 1) == 1;
  if (!taken) {
    rte_pktmbuf_free(frame);
  }
  return taken;
}

bool Port::send_now(rte_mbuf* frame, const std::function<void()>& meanwhile, uint16_t queue) const {
  for (uint32_t i = 0; i < kTurns; ++i) {
    if (rte_eth_tx_burst(id_, queue, &frame, 1) == 1) {
      return true;
    }
    meanwhile();
  }
  rte_pktmbuf_free(frame);
  return false;
}

rte_mbuf* Port::receive(const std::function<void()>& meanwhile, uint32_t turns,
                        uint16_t queue) const {
  for (uint32_t i = 0; i < turns; ++i) {
    rte_mbuf* got = nullptr;
    if (rte_eth_rx_burst(id_, queue, &got, 1) == 1) {
      return got;
    }
    meanwhile();
  }
  return nullptr;
}

void Port::work() const {
  rte_eth_tx_burst(id_, 0, nullptr, 0);
  rte_mbuf* none[1];
  rte_eth_rx_burst(id_, 0, none, 0);
}

uint64_t Port::xstat(const std::string& name) const {
  uint64_t id = 0;
  uint64_t value = 0;
  EXPECT_EQ(rte_eth_xstats_get_id_by_name(id_, name.c_str(), &id), 0) << name;
  EXPECT_EQ(rte_eth_xstats_get_by_id(id_, &id, &value, 1), 1);
  return value;
}

Bytes take(rte_mbuf* frame) {
  if (frame == nullptr) {
    ADD_FAILURE() << "no frame";
    return {};
  }
  Bytes bytes(frame->pkt_len);
  uint32_t at = 0;
  uint16_t segments = 0;
  for (const rte_mbuf* part = frame; part != nullptr; part = part->next, ++segments) {
    EXPECT_EQ(rte_mbuf_refcnt_read(part), 1);
    EXPECT_TRUE(RTE_MBUF_DIRECT(part));
    EXPECT_LE(at + part->data_len, bytes.size());
    if (at + part->data_len <= bytes.size()) {
      std::copy_n(rte_pktmbuf_mtod(part, const uint8_t*), part->data_len, bytes.begin() + at);
    }
    at += part->data_len;
  }
  EXPECT_EQ(at, bytes.size());
  EXPECT_EQ(segments, frame->nb_segs);
  EXPECT_GE(rte_pktmbuf_headroom(frame), RTE_PKTMBUF_HEADROOM);
  const char* why = nullptr;
  EXPECT_EQ(rte_mbuf_check(frame, 1, &why), 0) << why;
  rte_pktmbuf_free(frame);
  return bytes;
}

Pair::Pair(const std::string& wire, const Pool& pool, const PortConf& conf, const std::string& args)
    : device_a_("net_rio0", "wire=" + wire + (args.empty() ? "" : "," + args)),
      device_b_("net_rio1", "wire=" + wire + (args.empty() ? "" : "," + args)),
      a("net_rio0", pool, conf),
      b("net_rio1", pool, conf) {}

bool Pair::until(const std::function<bool()>& good, uint32_t turns) const {
  for (uint32_t i = 0; i < turns; ++i) {
    if (good()) {
      return true;
    }
    work();
  }
  return false;
}

/// Exchanges frames until both ports take bundles: frames sent before the links are up are lost.
/// The last frame of each is recognisable, so that none is left behind.
bool Pair::meet() {
  uint32_t number = 0;
  const auto in_bundle = [&](const Port& from, const Port& to) {
    const uint64_t before = to.xstat("rx_bundles");
    const Bytes bytes = frame_bytes(to.mac(), from.mac(), 64, ++number);
    if (!from.send_now(from.make(bytes), [this] { work(); })) {
      return false;
    }
    for (uint32_t i = 0; i < kTurns; ++i) {
      rte_mbuf* const got = to.receive([this] { work(); }, 1);
      if (got != nullptr && take(got) == bytes) {
        return to.xstat("rx_bundles") > before;
      }
    }
    return false;
  };
  for (uint32_t i = 0; i < 1000; ++i) {
    if (in_bundle(a, b) && in_bundle(b, a)) {
      return rte_eth_xstats_reset(a.id()) == 0 && rte_eth_xstats_reset(b.id()) == 0;
    }
    for (uint32_t turn = 0; turn < 64; ++turn) {
      work();
    }
  }
  return false;
}

namespace {

constexpr uint32_t kPage = 4096;
constexpr uint64_t kBuffers = 64;  // behind them is a page for messages to send

template <class Item>
bool put(uint16_t dev, uint16_t qp, uint16_t ring, Item item) {
  rte_raw_rio_context context{.queue_pair = qp, .ring = ring};
  rte_rawdev_buf place{.buf_addr = &item};
  rte_rawdev_buf* places[] = {&place};
  return rte_rawdev_enqueue_buffers(dev, places, 1, &context) == 1;
}
template <class Item>
bool get(uint16_t dev, uint16_t qp, uint16_t ring, Item* item) {
  rte_raw_rio_context context{.queue_pair = qp, .ring = ring};
  rte_rawdev_buf place{.buf_addr = item};
  rte_rawdev_buf* places[] = {&place};
  return rte_rawdev_dequeue_buffers(dev, places, 1, &context) == 1;
}

}  // namespace

RawPeer::RawPeer(const std::string& name, uint32_t to, std::function<void()> other,
                 uint16_t queue_pairs)
    : dev_(rte_rawdev_get_dev_id(name.c_str())),
      queue_pairs_(queue_pairs != 0 ? queue_pairs : rte_rawdev_queue_count(dev_)),
      to_(to),
      other_(std::move(other)) {
  EXPECT_LT(dev_, RTE_RAWDEV_MAX_DEVS);
  for (uint16_t qp = 0; qp < queue_pairs_; ++qp) {
    EXPECT_EQ(rte_rawdev_queue_setup(dev_, qp, nullptr, 0), 0);
  }
  EXPECT_EQ(rte_rawdev_start(dev_), 0);
  rte_raw_rio_info own{};
  rte_rawdev_info info{};
  info.dev_private = &own;
  EXPECT_EQ(rte_rawdev_info_get(dev_, &info, sizeof(own)), 0);
  dest_id_ = own.base_dest_id;
  memory_ = static_cast<uint8_t*>(rte_zmalloc("peer", (kBuffers + 1) * kPage, kPage));
  for (uint64_t i = 0; i < kBuffers; ++i) {
    post(i);
  }
}

RawPeer::~RawPeer() {
  rte_rawdev_stop(dev_);
  for (uint16_t qp = 0; qp < queue_pairs_; ++qp) {
    EXPECT_EQ(rte_rawdev_queue_release(dev_, qp), 0);
  }
  rte_free(memory_);
}

void RawPeer::post(uint64_t page) {
  EXPECT_TRUE(put(
      dev_, 0, RTE_RAW_RIO_SHARED,
      rte_raw_rio_buffer{.iova = rte_malloc_virt2iova(memory_) + page * kPage, .cookie = page}));
}

int RawPeer::finish(uint16_t qp) {
  rte_raw_rio_tx_done done{};
  for (uint32_t i = 0; i < kTurns; ++i) {
    if (get(dev_, qp, RTE_RAW_RIO_TX, &done)) {
      return done.status;
    }
    other_();
  }
  return -1;
}

int RawPeer::send(const Bytes& bytes, uint8_t mbox, uint16_t qp) {
  std::copy(bytes.begin(), bytes.end(), memory_ + kBuffers * kPage);
  rte_raw_rio_tx tx{};
  tx.iova = rte_malloc_virt2iova(memory_) + kBuffers * kPage;
  tx.dest_id = to_;
  tx.length_bytes = static_cast<uint16_t>(bytes.size());
  tx.mbox = mbox;
  return put(dev_, qp, RTE_RAW_RIO_TX, tx) ? finish(qp) : -1;
}

int RawPeer::ring(uint16_t info, uint16_t qp) {
  rte_raw_rio_tx tx{};
  tx.info = info;
  tx.dest_id = to_;
  tx.flags = RTE_RAW_RIO_TX_DOORBELL;
  return put(dev_, qp, RTE_RAW_RIO_TX, tx) ? finish(qp) : -1;
}

std::vector<RawPeer::Message> RawPeer::messages() {
  std::vector<Message> all;
  for (rte_raw_rio_message message{}; get(dev_, 0, RTE_RAW_RIO_SHARED, &message);) {
    EXPECT_EQ(message.status, RTE_RAW_RIO_OK);
    const uint8_t* const from = memory_ + message.cookie * kPage;
    all.push_back({message.source, message.mbox, Bytes(from, from + message.length_bytes)});
    post(message.cookie);
  }
  return all;
}

std::vector<RawPeer::Bell> RawPeer::bells() {
  std::vector<Bell> all = std::exchange(heard_, {});
  for (rte_raw_rio_doorbell bell{}; get(dev_, 0, RTE_RAW_RIO_DOORBELL, &bell);) {
    all.push_back({bell.source, bell.info});
  }
  return all;
}

bool RawPeer::hears(uint16_t info) {
  for (uint32_t i = 0; i < kTurns; ++i) {
    heard_ = bells();
    if (std::any_of(heard_.begin(), heard_.end(), [&](const Bell& b) { return b.info == info; })) {
      return true;
    }
    other_();
  }
  return false;
}

BundleBytes::BundleBytes(uint8_t items, uint16_t epoch, uint16_t number)
    : bytes{0xE5,
            0xB1,
            items,
            0,
            static_cast<uint8_t>(epoch),
            static_cast<uint8_t>(epoch >> 8),
            static_cast<uint8_t>(number),
            static_cast<uint8_t>(number >> 8)} {}

BundleBytes& BundleBytes::item(const Bytes& item, uint16_t total, uint16_t offset) {
  for (const uint16_t word : {static_cast<uint16_t>(item.size()), uint16_t{0}, total, offset}) {
    bytes.push_back(static_cast<uint8_t>(word));
    bytes.push_back(static_cast<uint8_t>(word >> 8));
  }
  std::ranges::copy(item, std::back_inserter(bytes));
  bytes.resize((bytes.size() + 7) & ~size_t{7});
  return *this;
}

}  // namespace rio::test
