/// @file
/// Maintenance: CARs and CSRs of the fabric and of the card, and port-writes.
#pragma once

#include <cstdint>
#include <span>

#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Synchronous, bounded maintenance accesses; control path. One thread at a time. Words are in host
/// order on this side of the API; the card puts them on the link as the specification wants.
/// Belongs to queue pair 0. regs: maint_desc, entry_cpl; RIO Part 1 §4.1.10.
///
/// All functions return 0; -EINVAL (1 to 16 words, offset a multiple of 4 within 24 bits; nothing
/// is sent); -EBUSY (too many accesses still unanswered); -ENODEV (card gone); -ETIMEDOUT (the card
/// did not complete it within timeout_ms, or the response time-out of the fabric passed:
/// last_status() == Status::kResponseTimeout); -EIO (ERROR response), -ENETDOWN (link down),
/// -ECANCELED (ring stopped), -EFAULT (host memory), -EAGAIN (retries expired). The card's own word
/// is last_status(). An access that timed out may still be carried out.
class alignas(64) MaintQueue : public PostingQueue {
 public:
  /// For create().
  explicit MaintQueue(SharedKey /*key*/) {}
  /// Start the ring. @param bus outlives the queue. @return as Ring::start, or -ENOTSUP where
  /// Caps::maint is false.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<MaintQueue>* out);
  ~MaintQueue();

  /// Read remote words. @param hop_count 0 to 255; @param offset in bytes; @param words set on
  /// success only.
  [[nodiscard]] int read(uint32_t dest_id, uint8_t hop_count, uint32_t offset,
                         std::span<uint32_t> words, uint32_t timeout_ms);
  /// Write remote words.
  [[nodiscard]] int write(uint32_t dest_id, uint8_t hop_count, uint32_t offset,
                          std::span<const uint32_t> words, uint32_t timeout_ms);
  /// Read the card's own CARs and CSRs.
  [[nodiscard]] int read_local(uint32_t offset, std::span<uint32_t> words, uint32_t timeout_ms);
  /// Write the card's own CSRs.
  [[nodiscard]] int write_local(uint32_t offset, std::span<const uint32_t> words,
                                uint32_t timeout_ms);
  /// Send a port-write; it has no response, so success means that it was sent.
  [[nodiscard]] int port_write(uint32_t dest_id, uint8_t hop_count, std::span<const uint32_t> words,
                               uint32_t timeout_ms);

  /// How the card completed the last access; kOk if it never completed it.
  [[nodiscard]] Status last_status() const { return last_status_; }

 private:
  struct Access {
    regs::MaintOp op;
    bool local;
    uint32_t dest_id;
    uint8_t hop_count;
    uint32_t offset;
    uint32_t* in;         // read: where the words go
    const uint32_t* out;  // write: where they come from
    size_t words;
  };

  [[nodiscard]] int carry_out(const Access& access, uint32_t timeout_ms);
  [[nodiscard]] int wait_for(uint64_t cookie, uint32_t timeout_ms, EntryDone* done);

  regs::MaintDesc* entries_ = nullptr;
  DmaMemory buffers_;  // regs::kMaintBytesMax for each slot: a late answer hits its own
  uint64_t next_cookie_ = 0;
  Status last_status_ = Status::kOk;
};

}  // namespace rio::pmd
