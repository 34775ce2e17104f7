#include "pmd/dev/maint_queue.hpp"

#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/log.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/reap.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

using Control = regs::maint_desc::Control;

constexpr uint32_t kOffsetLimit = 1u << 24;
constexpr size_t kWordBytes = sizeof(uint32_t);

[[nodiscard]] int to_errno(Status status) {
  static constexpr int kErrors[] = {0,       -EAGAIN, -ETIMEDOUT, -EIO,
                                    -EINVAL, -EFAULT, -ECANCELED, -ENETDOWN};  // by Status
  static_assert(static_cast<size_t>(Status::kLinkDown) + 1 == std::size(kErrors));
  const auto code = static_cast<size_t>(status);
  return code < std::size(kErrors) ? kErrors[code] : -EIO;
}

}  // namespace

int MaintQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                       SharedPtr<MaintQueue>* out) {
  if (!caps.maint) {
    base::log_error("%s: the card has no maintenance queue; leave the ring out",
                    bus.name().c_str());
    return -ENOTSUP;
  }
  return make_queue(bus, out, [&](MaintQueue& queue) {
    const int error = queue.start<regs::EntryCpl>(bus, caps, config, &queue.entries_);
    return error != 0 ? error
                      : bus.dma_alloc(size_t{regs::kMaintBytesMax} << config.log2,
                                      regs::kMaintBytesMax, &queue.buffers_);
  });
}

MaintQueue::~MaintQueue() {
  (void)stop();  // stop() logs errors
  if (buffers_.va != nullptr && !ring_.running()) {
    ring_.bus().dma_free(buffers_);
  }
}

int MaintQueue::read(uint32_t dest_id, uint8_t hop_count, uint32_t offset,
                     std::span<uint32_t> words, uint32_t timeout_ms) {
  return carry_out({regs::MaintOp::kRead, false, dest_id, hop_count, offset, words.data(), nullptr,
                    words.size()},
                   timeout_ms);
}

int MaintQueue::write(uint32_t dest_id, uint8_t hop_count, uint32_t offset,
                      std::span<const uint32_t> words, uint32_t timeout_ms) {
  return carry_out({regs::MaintOp::kWrite, false, dest_id, hop_count, offset, nullptr, words.data(),
                    words.size()},
                   timeout_ms);
}

int MaintQueue::read_local(uint32_t offset, std::span<uint32_t> words, uint32_t timeout_ms) {
  return carry_out({regs::MaintOp::kRead, true, 0, 0, offset, words.data(), nullptr, words.size()},
                   timeout_ms);
}

int MaintQueue::write_local(uint32_t offset, std::span<const uint32_t> words, uint32_t timeout_ms) {
  return carry_out({regs::MaintOp::kWrite, true, 0, 0, offset, nullptr, words.data(), words.size()},
                   timeout_ms);
}

int MaintQueue::port_write(uint32_t dest_id, uint8_t hop_count, std::span<const uint32_t> words,
                           uint32_t timeout_ms) {
  return carry_out({regs::MaintOp::kPortWrite, false, dest_id, hop_count, 0, nullptr, words.data(),
                    words.size()},
                   timeout_ms);
}

int MaintQueue::carry_out(const Access& access, uint32_t timeout_ms) {
  last_status_ = Status::kOk;
  const size_t len_bytes = access.words * kWordBytes;
  if (access.words == 0 || len_bytes > regs::kMaintBytesMax || access.offset % kWordBytes != 0 ||
      access.offset > kOffsetLimit - len_bytes) {
    stats_.rejected.add(1);
    base::log_error(
        "%s: maintenance access of %zu words at offset 0x%x; it takes 1 to %zu words at a "
        "multiple of 4 within 24 bits",
        ring_.bus().name().c_str(), access.words, access.offset, regs::kMaintBytesMax / kWordBytes);
    return -EINVAL;
  }
  EntryDone late[1];
  while (window_.room() == 0 && reap_any<EntryReap>(late, 1) != 0) {
  }
  if (window_.room() == 0) {
    base::log_error(
        "%s: maintenance ring is full of unanswered accesses; wait for the response "
        "time-out, or stop the queue",
        ring_.bus().name().c_str());
    return -EBUSY;
  }
  const uint32_t slot = window_.head() & window_.mask();
  uint8_t* const buffer = static_cast<uint8_t*>(buffers_.va) + size_t{slot} * regs::kMaintBytesMax;
  if (access.out != nullptr) {
    std::memcpy(buffer, access.out, len_bytes);
  }
  const uint64_t cookie = next_cookie_++;
  entries_[slot] = {Control::op.put(static_cast<uint32_t>(access.op)) |
                        Control::local.put(access.local ? 1 : 0) |
                        Control::hop_count.put(access.hop_count),
                    access.dest_id,
                    static_cast<uint32_t>(len_bytes),
                    static_cast<uint32_t>(cookie),
                    access.offset,
                    0,
                    buffers_.iova + uint64_t{slot} * regs::kMaintBytesMax};
  window_.cookies()[slot] = cookie;
  window_.sizes()[slot] = static_cast<uint32_t>(len_bytes);
  window_.post(1);
  // Doorbell: entry and words visible before it (barrier in write32); pairs with the card's fetch.
  bar_.write32(tail_offset_, window_.head());

  EntryDone done{};
  if (const int error = wait_for(cookie, timeout_ms, &done); error != 0) {
    return error;
  }
  last_status_ = done.status;
  if (done.status == Status::kOk && access.in != nullptr) {
    std::memcpy(access.in, buffer, len_bytes);
  }
  return to_errno(done.status);
}

int MaintQueue::wait_for(uint64_t cookie, uint32_t timeout_ms, EntryDone* done) {
  Waiter waiter(hook_, timeout_ms);
  bool more = true;
  for (;;) {
    const uint32_t got = reap_any<EntryReap>(done, 1);
    if (got != 0 && done->cookie == cookie) {
      return 0;
    }
    if (got != 0) {
      continue;  // the answer to an earlier access that has timed out
    }
    if (!more) {
      break;
    }
    more = waiter.pause();
  }
  const int state = ring_.state(nullptr, nullptr);
  if (state == -ENODEV) {
    return log_gone(ring_.bus().name());
  }
  base::log_error(
      "%s: qp %u ring maint: no completion within %u ms, state %s; wait longer than the "
      "response time-out, or reset the card",
      ring_.bus().name().c_str(), ring_.config().qp, timeout_ms, state_name(state));
  return -ETIMEDOUT;
}

}  // namespace rio::pmd
