/// @file
/// Generates messages: what txonly, rxonly and flowgen send.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/testpmd/link_pause.hpp"
#include "apps/testpmd/mode.hpp"

namespace rio::testpmd {

/// Where the next message goes; a source takes its ways in turn. Neighbours that are equal are
/// cheaper, and four letters of a mailbox can fly.
struct Way {
  uint32_t dest_id;
  uint16_t flow;
  uint8_t mbox;
};

/// How many mailboxes messages of a size are spread over.
[[nodiscard]] uint32_t mailboxes_for(const Options& options, uint32_t size_bytes);

/// Part of a stream; turn() and reap() are hot. Payloads lie at --offset in buffers of its own;
/// those that the card cannot take there are bounced (alignment plan).
class TxSource {
 public:
  /// @param ways at least one. @return 0, or -errno with the remedy in `error`.
  [[nodiscard]] static int create(const RunSetup& setup, TestPort& port, std::vector<Way> ways,
                                  Stream& owner, std::unique_ptr<TxSource>* out,
                                  std::string* error);
  ~TxSource();
  TxSource(const TxSource&) = delete;
  TxSource& operator=(const TxSource&) = delete;

  /// Send up to a burst. @param may_send false: only what is written already. @return sent.
  uint32_t turn(bool may_send) noexcept;
  /// Take completions back. @return how many.
  uint32_t reap() noexcept;
  [[nodiscard]] bool quiet() const noexcept { return in_flight_ == 0 && ready_ == 0; }
  /// All of --count are sent.
  [[nodiscard]] bool finished() const noexcept { return left_ == 0; }

 private:
  TxSource(const RunSetup& setup, TestPort& port, std::vector<Way> ways, Stream& owner);
  [[nodiscard]] int allocate(std::string* error);
  uint32_t prepare(uint32_t n) noexcept;
  void advance(uint32_t sent) noexcept;
  void failed(const pmd::TxDone& done) noexcept;

  pmd::TxQueue& queue_;
  LatencyProbe* probe_;  // of the receiver; null if it is elsewhere
  pmd::Bus& bus_;
  Verifier& verifier_;
  Stream& owner_;
  std::vector<Way> ways_;
  uint32_t size_bytes_;
  uint32_t offset_bytes_;
  uint32_t tx_addr_align_;
  uint32_t burst_;
  bool bounced_ = false;
  LinkPause pause_;
  uint64_t left_;  // of --count
  uint32_t in_flight_ = 0;
  uint32_t way_ = 0;    // the next one
  uint32_t ready_ = 0;  // messages that are written and not sent
  uint32_t free_top_ = 0;
  pmd::DmaMemory memory_;
  uint64_t va_minus_iova_ = 0;
  std::vector<uint64_t> free_;         // bus addresses of buffers, a stack
  std::vector<pmd::TxMessage> slots_;  // one for each way, and a burst more: ways in turn
  std::vector<uint16_t> flows_;        // of the slots
  pmd::TxDone done_[kBurstMax];
};

}  // namespace rio::testpmd
