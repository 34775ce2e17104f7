/// @file
/// Transmit queue of a port.
#pragma once

#include <rte_mbuf.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "pmd/dev/queue_pair.hpp"
#include "pmd/net/counts.hpp"
#include "pmd/net/peers.hpp"

namespace rio::pmd {

/// Longest frame in a message, without its FCS.
inline constexpr uint32_t kFrameBytesMax = regs::kMessageBytesMax;

/// One thread at a time in burst(). Frames are sent where they are; the mbuf is freed when the card
/// has sent it.
class NetTx {
 public:
  /// @param bus, peers outlive it. @return 0, -ENOMEM.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, Peers& peers,
                                  std::unique_ptr<NetTx>* out);
  ~NetTx();
  NetTx(const NetTx&) = delete;
  NetTx& operator=(const NetTx&) = delete;

  /// Queue pair is open. Control path.
  void start(QueuePair& pair);
  /// All mbufs come back. Control path. @param pair was stopped.
  void stop();

  /// Hot. @return how many were taken: the others belong to the caller.
  uint16_t burst(rte_mbuf** frames, uint16_t n);
  /// Tell a peer of us. Any thread but that of the bursts: if that has begun, it does so.
  void join(uint32_t dest_id);
  /// Tell all peers that we leave. Control path, before stop().
  void leave();

  [[nodiscard]] const NetTxCounts& counts() const { return counts_; }

 private:
  NetTx(Bus& bus, const Caps& caps, Peers& peers);
  void reap();
  void not_taken(uint64_t cookie, Status status);
  void look_up();
  [[nodiscard]] bool send(rte_mbuf& frame);
  [[nodiscard]] bool send_to_all(rte_mbuf& frame);
  [[nodiscard]] bool post(rte_mbuf& frame, uint32_t dest_id);
  [[nodiscard]] bool in_place(const rte_mbuf& frame) const;
  void post_in_place(rte_mbuf& frame, uint32_t dest_id);
  void post_copy(const rte_mbuf& frame, uint32_t dest_id);
  void flush();
  void send_doorbells();

  static constexpr uint16_t kBurst = 32;

  Bus& bus_;
  Peers& peers_;
  uint64_t misaligned_;  // bits that must be 0 in an address
  QueuePair* pair_ = nullptr;
  uint16_t staged_count_ = 0;
  TxMessage staged_[kBurst];
  NetTxCounts counts_;
  DmaMemory copies_;  // places for frames that cannot be sent where they are
  std::vector<uint32_t> free_copies_;
  // Set: something is to be told, or no burst has been yet.
  std::atomic<bool> attention_{true};
  std::mutex telling_;  // not in bursts, but for those with attention_
  bool polled_ = false;
  DestIdSet owed_;
};

}  // namespace rio::pmd
