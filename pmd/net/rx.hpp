/// @file
/// Receive queue of a port.
#pragma once

#include <rte_mbuf.h>

#include <functional>
#include <memory>

#include "pmd/dev/queue_pair.hpp"
#include "pmd/net/counts.hpp"
#include "pmd/net/peers.hpp"

namespace rio::pmd {

struct NetRxConfig {
  uint16_t port = 0;  ///< of ethdev
  rte_mempool* pool = nullptr;
  bool scatter = false;  ///< frames may take several mbufs
};

/// One thread in burst(). Frames land in buffers of its own and are copied to mbufs, of whatever
/// size.
class NetRx {
 public:
  /// @param peers of the port; this thread changes it. @param joined called when somebody new has
  /// joined. @return 0, -ENOMEM.
  [[nodiscard]] static int create(Bus& bus, const NetRxConfig& config, Peers& peers,
                                  std::function<void(uint32_t dest_id)> joined,
                                  std::unique_ptr<NetRx>* out);
  ~NetRx();
  NetRx(const NetRx&) = delete;
  NetRx& operator=(const NetRx&) = delete;

  /// Queue pair is open. Control path. @return 0, -EIO: the ring took too few buffers.
  [[nodiscard]] int start(QueuePair& pair);
  void stop() { pair_ = nullptr; }

  /// Hot. @return how many frames were received.
  uint16_t burst(rte_mbuf** frames, uint16_t n);

  [[nodiscard]] const NetRxCounts& counts() const { return counts_; }

 private:
  NetRx(Bus& bus, const NetRxConfig& config, Peers& peers, std::function<void(uint32_t)> joined);
  [[nodiscard]] const uint8_t* bytes(const RxMessage& message) const;
  [[nodiscard]] bool good(const RxMessage& message);
  [[nodiscard]] bool fill(rte_mbuf& first, const uint8_t* from, uint32_t length_bytes);
  void look_at_doorbells();

  static constexpr uint16_t kBurst = 32;

  Bus& bus_;
  NetRxConfig config_;
  Peers& peers_;
  std::function<void(uint32_t)> joined_;
  QueuePair* pair_ = nullptr;
  uint32_t bursts_ = 0;
  NetRxCounts counts_;
  DmaMemory buffers_;
};

}  // namespace rio::pmd
