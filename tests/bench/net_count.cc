// Sends Ethernet frames from one port of net_rio to another, wired to it, so that callgrind can
// count what the driver does in its bursts, each kind in a run of its own:
//   LD_LIBRARY_PATH=build/pmd/raw:build/pmd/net:build/pmd/dma valgrind --tool=callgrind
//   --collect-atstart=no
//     --toggle-collect=rio_bench_tx|rio_bench_rx|rio_bench_free|rio_bench_round
//     net_count BYTES BURST ROUNDS [STEPS]
// BYTES are the length of a frame, without checksum. STEPS of both cards follow each burst that is
// sent, so that the frames have arrived when the receiver polls. 0: only the bursts step the cards,
// as in a program that forwards. Prints one JSON object.
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/dma_device.hpp"
#include "tests/bench/eal.hpp"

namespace {

using rio::bench::expect;

constexpr uint16_t kBurstMax = 32;
constexpr uint16_t kEntries = 512;
constexpr uint32_t kMbufs = 4095;
constexpr uint32_t kWarmUp = 400;  // rounds: the ports know each other, the rings have wrapped
constexpr uint32_t kSteps = 64;    // of both cards for a burst: twice what the longest burst needs
constexpr uint32_t kTurnsMax = 10'000;  // bursts to send or receive a burst of frames

}  // namespace

// The code that callgrind counts, one function at a time. Not inlined, and with names that are easy
// to type.
extern "C" [[gnu::noinline]] uint16_t rio_bench_tx(uint16_t port, rte_mbuf** frames, uint16_t n) {
  return rte_eth_tx_burst(port, 0, frames, n);
}
extern "C" [[gnu::noinline]] uint16_t rio_bench_rx(uint16_t port, rte_mbuf** frames, uint16_t n) {
  return rte_eth_rx_burst(port, 0, frames, n);
}
extern "C" [[gnu::noinline]] void rio_bench_free(rte_mbuf** frames, unsigned n) {
  rte_pktmbuf_free_bulk(frames, n);
}

namespace {

// Bursts that callgrind does not count, for the warm-up.
uint16_t uncounted_tx(uint16_t port, rte_mbuf** frames, uint16_t n) {
  return rte_eth_tx_burst(port, 0, frames, n);
}
uint16_t uncounted_rx(uint16_t port, rte_mbuf** frames, uint16_t n) {
  return rte_eth_rx_burst(port, 0, frames, n);
}

class Port {
 public:
  /// @param beside name of a DMA device on the same card.
  Port(const char* name, const char* beside, rte_mempool* pool)
      : beside_(rio::bench::start_dma(beside, RTE_DMA_DIR_MEM_TO_DEV, 0)) {
    expect(rte_eth_dev_get_port_by_name(name, &id_) == 0, "no port: is librte_net_rio.so loaded?");
    rte_eth_conf conf{};
    conf.rxmode.mtu = RTE_ETHER_MTU;
    expect(rte_eth_dev_configure(id_, 1, 1, &conf) == 0, "configuring a port");
    expect(rte_eth_rx_queue_setup(id_, 0, kEntries, 0, nullptr, pool) == 0, "a receive queue");
    expect(rte_eth_tx_queue_setup(id_, 0, kEntries, 0, nullptr) == 0, "a transmit queue");
    expect(rte_eth_dev_start(id_) == 0, "starting a port");
    expect(rte_eth_macaddr_get(id_, &address_) == 0, "a port's address");
  }
  [[nodiscard]] uint16_t id() const { return id_; }
  [[nodiscard]] int16_t beside() const { return beside_; }
  [[nodiscard]] const rte_ether_addr& address() const { return address_; }
  /// Polls for doorbells and frames; none come to this port. Sent frames are not freed here: the
  /// next burst frees them, and is counted.
  void look() const {
    rte_mbuf* none[1];
    expect(rte_eth_rx_burst(id_, 0, none, 1) == 0, "no frame is sent to the sender");
  }
  /// Sends doorbells that the port owes.
  void answer() const { (void)rte_eth_tx_burst(id_, 0, nullptr, 0); }

 private:
  int16_t beside_;
  uint16_t id_ = 0;
  rte_ether_addr address_{};
};

class Traffic {
 public:
  Traffic(const Port& from, const Port& to, rte_mempool* pool, uint16_t bytes, uint16_t burst,
          uint32_t steps)
      : from_(from), to_(to), pool_(pool), bytes_(bytes), burst_(burst), steps_(steps) {}

  void round() {
    rte_mbuf* frames[kBurstMax];
    make(frames);
    uint16_t sent = 0;
    for (uint32_t turn = 0; sent < burst_ && turn < kTurnsMax; ++turn) {
      const auto rest = static_cast<uint16_t>(burst_ - sent);
      sent = static_cast<uint16_t>(
          sent + (counted_ ? rio_bench_tx : uncounted_tx)(from_.id(), frames + sent, rest));
      ++tx_bursts_;
    }
    expect(sent == burst_, "sending a burst");
    step_cards();  // so that the frames have arrived: polls without a frame are not counted
    uint16_t got = 0;
    for (uint32_t turn = 0; got < burst_ && turn < kTurnsMax; ++turn) {
      const auto rest = static_cast<uint16_t>(burst_ - got);
      got = static_cast<uint16_t>(
          got + (counted_ ? rio_bench_rx : uncounted_rx)(to_.id(), frames + got, rest));
      ++rx_bursts_;
      from_.look();
      step_cards();
    }
    expect(got == burst_, "receiving a burst");
    check(frames);
    (counted_ ? rio_bench_free : rte_pktmbuf_free_bulk)(frames, burst_);
    to_.answer();
    frames_ += burst_;
  }
  /// Counts everything from here on.
  void begin() {
    counted_ = true;
    frames_ = tx_bursts_ = rx_bursts_ = 0;
  }
  void print(uint64_t rounds) const {
    std::printf(
        "{\"bytes\": %u, \"burst\": %u, \"rounds\": %llu, \"frames\": %llu, "
        "\"tx_bursts\": %llu, \"rx_bursts\": %llu}\n",
        bytes_, burst_, static_cast<unsigned long long>(rounds),
        static_cast<unsigned long long>(frames_), static_cast<unsigned long long>(tx_bursts_),
        static_cast<unsigned long long>(rx_bursts_));
  }

 private:
  void step_cards() const {
    for (uint32_t i = 0; i < steps_; ++i) {
      rio::bench::step_card(from_.beside());
      rio::bench::step_card(to_.beside());
    }
  }
  void make(rte_mbuf** frames) {
    expect(rte_pktmbuf_alloc_bulk(pool_, frames, burst_) == 0,
           "taking mbufs: some did not come back");
    for (uint16_t i = 0; i < burst_; ++i) {
      auto* const bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frames[i], bytes_));
      rte_ether_hdr header{};
      header.dst_addr = to_.address();
      header.src_addr = from_.address();
      header.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
      std::memcpy(bytes, &header, sizeof(header));
      std::memcpy(bytes + sizeof(header), &next_made_, sizeof(next_made_));
      ++next_made_;
    }
  }
  void check(rte_mbuf** frames) {
    for (uint16_t i = 0; i < burst_; ++i) {
      uint32_t number = 0;
      std::memcpy(&number, rte_pktmbuf_mtod_offset(frames[i], uint8_t*, sizeof(rte_ether_hdr)),
                  sizeof(number));
      expect(frames[i]->pkt_len >= bytes_ && number == next_got_, "frames as they were sent");
      ++next_got_;
    }
  }

  const Port& from_;
  const Port& to_;
  rte_mempool* pool_;
  uint16_t bytes_;
  uint16_t burst_;
  uint32_t steps_;
  bool counted_ = false;
  uint32_t next_made_ = 0;
  uint32_t next_got_ = 0;
  uint64_t frames_ = 0;
  uint64_t tx_bursts_ = 0;
  uint64_t rx_bursts_ = 0;
};

}  // namespace

/// A whole round, and nothing outside of one.
extern "C" [[gnu::noinline]] void rio_bench_round(Traffic* traffic) {
  traffic->round();
}

int main(int argc, char** argv) {
  const unsigned long bytes = argc >= 4 ? std::strtoul(argv[1], nullptr, 0) : 0;
  const unsigned long burst = argc >= 4 ? std::strtoul(argv[2], nullptr, 0) : 0;
  if (bytes < 60 || bytes > RTE_ETHER_MTU + RTE_ETHER_HDR_LEN || burst < 1 || burst > kBurstMax) {
    std::fprintf(stderr,
                 "usage: %s BYTES BURST ROUNDS [STEPS]: 60 to 1514 bytes, bursts of 1 to 32\n",
                 argv[0]);
    return 1;
  }
  const uint64_t rounds = std::strtoull(argv[3], nullptr, 0);
  const auto steps = argc > 4 ? static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 0)) : kSteps;
  rio::bench::start_eal({"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "-d",
                         "librte_dma_rio.so", "--vdev=raw_rio0,wire=count,qps=2",
                         "--vdev=raw_rio1,wire=count,qps=2", "--vdev=net_rio0,card=raw_rio0",
                         "--vdev=net_rio1,card=raw_rio1", "--vdev=dma_rio0,card=raw_rio0",
                         "--vdev=dma_rio1,card=raw_rio1"});
  rte_mempool* const pool =
      rte_pktmbuf_pool_create("frames", kMbufs, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  expect(pool != nullptr, "a pool of mbufs");
  const Port a("net_rio0", "dma_rio0", pool);
  const Port b("net_rio1", "dma_rio1", pool);
  Traffic traffic(a, b, pool, static_cast<uint16_t>(bytes), static_cast<uint16_t>(burst), steps);
  for (uint32_t i = 0; i < kWarmUp; ++i) {
    traffic.round();
  }
  traffic.begin();
  for (uint64_t i = 0; i < rounds; ++i) {
    rio_bench_round(&traffic);
  }
  traffic.print(rounds);
  expect(rte_eth_dev_stop(a.id()) == 0 && rte_eth_dev_stop(b.id()) == 0, "stopping the ports");
  return 0;
}
