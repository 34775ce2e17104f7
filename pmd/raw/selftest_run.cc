#include "pmd/raw/selftest_run.hpp"

#include <sched.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/log.hpp"
#include "pmd/dev/names.hpp"

namespace rio::pmd {
namespace {

using Pages = SelftestPages;
constexpr uint32_t kPage = regs::kMessageBytesMax;
constexpr auto kPatience = std::chrono::seconds(5);
/// Responses that may stay away: a busy machine may stop an emulated card for longer than a
/// response time-out. What was sent has to arrive all the same.
constexpr uint32_t kMostInDoubt = 8;
constexpr int kAgainFromTheStart = 1;

uint8_t* page_va(const SelftestEnd& end, uint32_t page) {
  return static_cast<uint8_t*>(end.memory.va) + size_t{page} * kPage;
}
uint64_t page_iova(const SelftestEnd& end, uint32_t page) {
  return end.memory.iova + uint64_t{page} * kPage;
}

/// Byte `at` of the message of `len` bytes.
uint8_t pattern(uint32_t len, uint32_t at) {
  return static_cast<uint8_t>((len * 2654435761u + at * 40503u) >> 7);
}

void fill(uint8_t* bytes, uint32_t len) {
  for (uint32_t i = 0; i < len; ++i) {
    bytes[i] = pattern(len, i);
  }
}

/// Index of the first wrong byte, or `len`. Beyond the message there are zeros up to 8 bytes.
uint32_t first_wrong(const uint8_t* bytes, uint32_t len, uint32_t padded) {
  for (uint32_t i = 0; i < padded; ++i) {
    if (bytes[i] != (i < len ? pattern(len, i) : 0)) {
      return i;
    }
  }
  return padded;
}

constexpr uint32_t padded8(uint32_t len) {
  return (len + 7) & ~7u;
}

}  // namespace

int SelftestRun::post_buffers(SelftestEnd& end) {
  for (uint32_t i = 0; i < Pages::kSharedCount; ++i) {
    const RxBuffer buffer{.iova = page_iova(end, Pages::kShared + i), .cookie = Pages::kShared + i};
    if (end.pair->shared().post(&buffer, 1) != 1) {
      base::log_error("%s: selftest: the shared queue takes no buffer", end.device->name().c_str());
      return -EIO;
    }
  }
  return 0;
}

/// Calls `poll` until it returns something other than -EAGAIN, and lets both cards work.
int SelftestRun::wait(const char* what, const std::function<int()>& poll) {
  const PollHook hooks[] = {from_.device->bus().poll_hook(from_.qp),
                            to_.device->bus().poll_hook(to_.qp)};
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (uint32_t turn = 0;; ++turn) {
    if (const int rc = poll(); rc != -EAGAIN) {
      return rc;
    }
    for (const PollHook& hook : hooks) {
      hook();
      if (hook.fn == nullptr) {
        sched_yield();  // a thread of the card's may want this CPU
      }
    }
    if (turn % 256 == 255 && std::chrono::steady_clock::now() > end) {
      base::log_error("%s: selftest: %s to %s: nothing moves", from_.device->name().c_str(), what,
                      to_.device->name().c_str());
      return -ETIMEDOUT;
    }
  }
}

int SelftestRun::reap_tx(uint32_t count) {
  return wait("completions", [&, done = uint32_t{0}]() mutable {
    TxDone sent[Pages::kTxCount];
    const uint16_t n = from_.pair->tx().reap(sent, Pages::kTxCount);
    for (uint16_t i = 0; i < n; ++i) {
      if (sent[i].status == Status::kResponseTimeout && ++in_doubt_ <= kMostInDoubt) {
        base::log_warning("%s: selftest: the response to message %llu came late or never",
                          from_.device->name().c_str(),
                          static_cast<unsigned long long>(sent[i].cookie));
      } else if (sent[i].status != Status::kOk) {
        base::log_error("%s: selftest: message %llu ended with '%s'", from_.device->name().c_str(),
                        static_cast<unsigned long long>(sent[i].cookie), name(sent[i].status));
        return -EIO;
      }
    }
    done += n;
    return done < count ? -EAGAIN : 0;
  });
}

int SelftestRun::check(const RxMessage& message, const TxMessage* sent, uint32_t count) {
  const char* const who = to_.device->name().c_str();
  if (message.status != Status::kOk || message.source != from_.dest_id ||
      message.dest_id != to_.dest_id) {
    base::log_error(
        "%s: selftest: message from %#x to %#x came with '%s'; expected from %#x to %#x", who,
        message.source, message.dest_id, name(message.status), from_.dest_id, to_.dest_id);
    return -EIO;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t len = sent[i].length_bytes;
    if (padded8(len) != message.length_bytes || sent[i].mbox != message.mbox) {
      continue;
    }
    const auto* bytes = page_va(to_, static_cast<uint32_t>(message.cookie));
    const uint32_t wrong = first_wrong(bytes, len, padded8(len));
    if (wrong != padded8(len)) {
      base::log_error("%s: selftest: byte %u of a message of %u is %02x", who, wrong, len,
                      bytes[wrong]);
      return -EIO;
    }
    return 0;
  }
  base::log_error("%s: selftest: a message of %u bytes in mailbox %u that nobody sent", who,
                  message.length_bytes, message.mbox);
  return -EIO;
}

/// Messages of different padded lengths, since letters may overtake each other.
int SelftestRun::exchange(const TxMessage* messages, uint32_t count) {
  if (from_.pair->tx().burst(messages, static_cast<uint16_t>(count)) != count) {
    base::log_error("%s: selftest: message of %u bytes not taken: %s", from_.device->name().c_str(),
                    messages[0].length_bytes, name(from_.pair->tx().last_reject()));
    return -EIO;
  }
  const int rc = wait("messages", [&, done = uint32_t{0}]() mutable {
    RxMessage got[Pages::kTxCount];
    const uint16_t n = to_.pair->shared().burst(got, Pages::kTxCount);
    for (uint16_t i = 0; i < n; ++i) {
      if (const int bad = check(got[i], messages, count); bad != 0) {
        return bad;
      }
      const RxBuffer back{.iova = page_iova(to_, static_cast<uint32_t>(got[i].cookie)),
                          .cookie = got[i].cookie};
      if (to_.pair->shared().post(&back, 1) != 1) {
        return -EIO;
      }
    }
    done += n;
    return done < count ? -EAGAIN : 0;
  });
  return rc != 0 ? rc : reap_tx(count);
}

int SelftestRun::sizes() {
  constexpr uint32_t kStep = regs::kMessageBytesMax / Pages::kTxCount;
  for (uint32_t first = 1; first <= kStep; ++first) {
    TxMessage messages[Pages::kTxCount];
    for (uint32_t i = 0; i < Pages::kTxCount; ++i) {
      const uint32_t len = first + i * kStep;
      fill(page_va(from_, Pages::kTx + i), len);
      messages[i] = {.iova = page_iova(from_, Pages::kTx + i),
                     .cookie = len,
                     .dest_id = to_.dest_id,
                     .length_bytes = static_cast<uint16_t>(len),
                     .mbox = static_cast<uint8_t>((first + i) % regs::kMultiMailboxes),
                     .flags = 0};
    }
    if (const int rc = exchange(messages, Pages::kTxCount); rc != 0) {
      return rc;
    }
  }
  return 0;
}

int SelftestRun::inline_sizes() {
  const uint32_t most = from_.device->card()->caps().inline_bytes;
  for (uint32_t i = 0; most != 0 && i < regs::kMailboxes; ++i) {
    uint8_t bytes[regs::kInlineBytes];
    const uint32_t len = 1 + i % std::min(most, regs::kInlineBytes);
    fill(bytes, len);
    const TxMessage message{.data = bytes,
                            .cookie = len,
                            .dest_id = to_.dest_id,
                            .length_bytes = static_cast<uint16_t>(len),
                            .mbox = static_cast<uint8_t>(i),
                            .flags = TxFlags::kInline};
    if (const int rc = exchange(&message, 1); rc != 0) {
      return rc;
    }
  }
  return 0;
}

int SelftestRun::doorbells() {
  for (uint32_t i = 0; i < 16; ++i) {
    const auto info = static_cast<uint16_t>(0x8001u >> i | 1u << i);
    const TxMessage message{.info = info,
                            .cookie = i,
                            .dest_id = to_.dest_id,
                            .length_bytes = 0,
                            .mbox = 0,
                            .flags = TxFlags::kDoorbell};
    if (from_.pair->tx().burst(&message, 1) != 1) {
      base::log_error("%s: selftest: doorbell not taken", from_.device->name().c_str());
      return -EIO;
    }
    const int rc = wait("doorbell", [&] {
      DoorbellEvent event{};
      if (to_.pair->doorbells().burst(&event, 1) == 0) {
        return -EAGAIN;
      }
      if (event.info != info || event.source != from_.dest_id) {
        base::log_error("%s: selftest: doorbell %04x from %#x, expected %04x from %#x",
                        to_.device->name().c_str(), event.info, event.source, info, from_.dest_id);
        return -EIO;
      }
      return 0;
    });
    if (const int reaped = rc != 0 ? rc : reap_tx(1); reaped != 0) {
      return reaped;
    }
  }
  return 0;
}

int SelftestRun::dedicated_queue(uint32_t i) {
  constexpr uint32_t kSizes[] = {regs::kSegmentBytesMax, regs::kMessageBytesMax};
  const auto mbox = static_cast<uint8_t>(i % regs::kMultiMailboxes);
  DedicatedRxQueue* queue = nullptr;
  if (const int rc = to_.pair->open_dedicated(i, from_.dest_id, mbox, &queue); rc != 0) {
    return rc;
  }
  int rc = 0;
  for (uint32_t k = 0; k < std::size(kSizes) && rc == 0; ++k) {
    const uint32_t len = kSizes[k];
    const DedicatedEntry entry{
        .iova = page_iova(to_, Pages::kDirect + k), .cookie = k, .size_bytes = len};
    fill(page_va(from_, Pages::kTx), len);
    const TxMessage message{.iova = page_iova(from_, Pages::kTx),
                            .cookie = len,
                            .dest_id = to_.dest_id,
                            .length_bytes = static_cast<uint16_t>(len),
                            .mbox = mbox,
                            .flags = 0};
    if (queue->post(&entry, 1) != 1 || from_.pair->tx().burst(&message, 1) != 1) {
      base::log_error("%s: selftest: dedicated queue %u takes no entry", to_.device->name().c_str(),
                      i);
      rc = -EIO;
      break;
    }
    rc = wait("dedicated entry", [&] {
      EntryDone done{};
      if (queue->reap(&done, 1) == 0) {
        return -EAGAIN;
      }
      const bool good = done.status == Status::kOk && done.bytes == len && done.cookie == k &&
                        first_wrong(page_va(to_, Pages::kDirect + k), len, len) == len;
      if (!good) {
        base::log_error("%s: selftest: dedicated entry of %u bytes: '%s', %u bytes",
                        to_.device->name().c_str(), len, name(done.status), done.bytes);
      }
      return good ? 0 : -EIO;
    });
    rc = rc != 0 ? rc : reap_tx(1);
  }
  const int closed = to_.pair->close_dedicated(i);
  return rc != 0 ? rc : closed;
}

int SelftestRun::dedicated() {
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    if (const int rc = dedicated_queue(i); rc != 0) {
      return rc;
    }
  }
  return 0;
}

int SelftestRun::remote(regs::DmaOp op, uint64_t rio_addr, uint64_t iova) {
  const DmaRequest request{.rio_addr = rio_addr,
                           .iova = iova,
                           .cookie = rio_addr,
                           .dest_id = to_.dest_id,
                           .length_bytes = kPage,
                           .op = op,
                           .prio = 0};
  if (from_.pair->dma().post(&request, 1) != 1) {
    base::log_error("%s: selftest: DMA request not taken: %s", from_.device->name().c_str(),
                    name(from_.pair->dma().last_reject()));
    return -EIO;
  }
  const int rc = wait("remote memory", [&] {
    EntryDone done{};
    if (from_.pair->dma().reap(&done, 1) == 0) {
      return -EAGAIN;
    }
    if (done.status == Status::kResponseTimeout && ++in_doubt_ <= kMostInDoubt) {
      return kAgainFromTheStart;
    }
    if (done.status != Status::kOk) {
      base::log_error("%s: selftest: DMA request ended with '%s'", from_.device->name().c_str(),
                      name(done.status));
    }
    return done.status == Status::kOk ? 0 : -EIO;
  });
  return rc == kAgainFromTheStart ? remote(op, rio_addr, iova) : rc;
}

int SelftestRun::remote_memory() {
  constexpr uint64_t kRioAddr = 0x10'0000;
  const bool has_dma = (from_.pair->rings() & ring_bit(regs::Ring::kDma)) != 0;
  if (!has_dma || !to_.pair->has_windows()) {
    return 0;
  }
  const Window window{.rio_addr = kRioAddr,
                      .size_bytes = kPage,
                      .iova = page_iova(to_, Pages::kDirect + 2),
                      .rights = WindowRights::kRead | WindowRights::kWrite};
  uint32_t index = 0;
  if (const int rc = to_.pair->windows().open(window, &index); rc != 0) {
    return rc;
  }
  fill(page_va(from_, Pages::kTx), kPage);
  std::memset(page_va(from_, Pages::kDirect + 3), 0, kPage);
  int rc = remote(regs::DmaOp::kNwriteR, kRioAddr, page_iova(from_, Pages::kTx));
  rc = rc != 0 ? rc : remote(regs::DmaOp::kNread, kRioAddr, page_iova(from_, Pages::kDirect + 3));
  const bool good =
      rc != 0 || first_wrong(page_va(from_, Pages::kDirect + 3), kPage, kPage) == kPage;
  if (!good) {
    base::log_error("%s: selftest: NREAD brought other bytes than NWRITE_R wrote",
                    from_.device->name().c_str());
  }
  const int closed = to_.pair->windows().close(index);
  return rc != 0 ? rc : good ? closed : -EIO;
}

}  // namespace rio::pmd
