#include "apps/tool/selftest_loop.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "pmd/dev/names.hpp"

namespace rio::tool {
namespace {

constexpr uint32_t kRxBytes = 2 * SelftestBench::kPageBytes;  // the buffer, and a guard behind it

constexpr uint32_t padded8(uint32_t len_bytes) {
  return (len_bytes + 7) & ~7u;
}

std::string describe(const MessageTrial& trial) {
  return "message of " + std::to_string(trial.len_bytes) + " bytes, mailbox " +
         std::to_string(trial.mbox) + ", segments of " + std::to_string(trial.ssize_bytes);
}

/// TxFlags' code of a segment size: 1 for 8 bytes; 0 for 256.
uint8_t ssize_flag(uint32_t ssize_bytes) {
  return ssize_bytes == regs::kSegmentBytesMax
             ? 0
             : static_cast<uint8_t>((std::countr_zero(ssize_bytes) - 2)
                                    << pmd::TxFlags::kSsizeShift);
}

}  // namespace

void Image::put(const SelftestBench& bench, uint64_t number, uint32_t from, uint32_t to,
                uint32_t len_bytes, uint32_t padded_bytes) {
  for (uint32_t i = 0; i < padded_bytes; ++i) {
    bytes_[to + i] = i < len_bytes ? bench.byte(number, from + i) : uint8_t{0};
  }
}

void Image::anything(uint32_t to, uint32_t len_bytes) {
  std::fill_n(bytes_.begin() + to, len_bytes, kAnything);
}

std::string Image::compare(const uint8_t* bytes) const {
  for (uint32_t i = 0; i < size(); ++i) {
    if (bytes_[i] != kAnything && bytes[i] != bytes_[i]) {
      char text[64];
      std::snprintf(text, sizeof(text), "byte %u is 0x%02x, not 0x%02x", i, bytes[i],
                    static_cast<unsigned>(bytes_[i]));
      return text;
    }
  }
  return "";
}

SelftestLoop::~SelftestLoop() {
  if (pair_ != nullptr) {
    (void)bench_.close(std::move(pair_));  // something else went wrong before, and was told
  }
}

std::string SelftestLoop::open(const pmd::QueuePairConfig& queues, bool need_link) {
  return !need_link || bench_.wait_link() ? bench_.open(queues, &pair_) : "the link is down";
}

std::string SelftestLoop::close() {
  return bench_.close(std::move(pair_));
}

pmd::TxMessage SelftestLoop::prepare(const MessageTrial& trial) {
  uint8_t* const bytes = bench_.va(SelftestBench::kTxPage);
  bench_.fill(bytes, trial.len_bytes, trial.number);
  std::memset(bench_.va(SelftestBench::kRxPage), Image::kPoison, kRxBytes);
  pmd::TxMessage message{.iova = bench_.iova(SelftestBench::kTxPage),
                         .cookie = trial.number,
                         .dest_id = bench_.config().dest_id,
                         .length_bytes = static_cast<uint16_t>(trial.len_bytes),
                         .mbox = trial.mbox,
                         .flags = ssize_flag(trial.ssize_bytes)};
  if (trial.is_inline) {
    message.data = bytes;
    message.flags |= pmd::TxFlags::kInline;
  }
  return message;
}

/// Look for the end of what was sent. @return false if it is wrong.
bool SelftestLoop::reap(const std::string& what, bool* sent, std::string* wrong) {
  pmd::TxDone done{};
  if (!*sent && pair_->tx().reap(&done, 1) == 1) {
    *sent = true;
    if (done.status != pmd::Status::kOk) {
      *wrong = what + " ended with '" + pmd::name(done.status) + "'";
    }
  }
  return wrong->empty();
}

std::string SelftestLoop::send(const pmd::TxMessage& message, const std::string& what) {
  if (pair_->tx().burst(&message, 1) != 1) {
    return what + " is not taken: " + pmd::name(pair_->tx().last_reject());
  }
  bool sent = false;
  return bench_.wait("the end of a " + what,
                     [&](std::string* wrong) { return reap(what, &sent, wrong) && sent; });
}

Image SelftestLoop::landing(const MessageTrial& trial, uint32_t len_bytes) const {
  const pmd::Caps& caps = bench_.card().caps();
  Image image(len_bytes);
  const uint32_t ssize = trial.ssize_bytes;
  const uint32_t segments = (trial.len_bytes + ssize - 1) / ssize;
  for (uint32_t k = 0; k + 1 < segments; ++k) {
    image.put(bench_, trial.number, k * ssize, k * ssize, ssize, ssize);
  }
  const uint32_t from = (segments - 1) * ssize;
  const uint32_t to = caps.quirk_last_at_256 ? (segments - 1) * regs::kSegmentBytesMax : from;
  if (caps.quirk_last_full_256) {
    image.anything(to, regs::kSegmentBytesMax);
  }
  const uint32_t last = trial.len_bytes - from;
  image.put(bench_, trial.number, from, to, last, padded8(last));
  return image;
}

std::string SelftestLoop::message(const MessageTrial& trial) {
  const std::string what = describe(trial);
  const pmd::TxMessage message = prepare(trial);
  const pmd::RxBuffer buffer{bench_.iova(SelftestBench::kRxPage), trial.number};
  if (pair_->shared().post(&buffer, 1) != 1) {
    return "the shared queue takes no buffer";
  }
  if (pair_->tx().burst(&message, 1) != 1) {
    return what + " is not taken: " + pmd::name(pair_->tx().last_reject());
  }
  bool sent = false;
  bool came = false;
  pmd::RxMessage got{};
  std::string wrong = bench_.wait(what, [&](std::string* error) {
    came = came || pair_->shared().burst(&got, 1) == 1;
    return reap(what, &sent, error) && sent && came;
  });
  if (!wrong.empty()) {
    return wrong;
  }
  const uint32_t own = bench_.config().dest_id;
  const uint32_t segments = (trial.len_bytes + trial.ssize_bytes - 1) / trial.ssize_bytes;
  if (got.status != pmd::Status::kOk) {
    return what + " came with '" + pmd::name(got.status) + "'";
  }
  if (got.cookie != trial.number || got.length_bytes != padded8(trial.len_bytes) ||
      got.mbox != trial.mbox || got.segments != segments || got.source != own ||
      got.dest_id != own) {
    return what + " came as " + std::to_string(got.length_bytes) + " bytes in " +
           std::to_string(got.segments) + " segments, mailbox " + std::to_string(got.mbox) +
           ", from " + std::to_string(got.source);
  }
  const std::string differs = landing(trial, kRxBytes).compare(bench_.va(SelftestBench::kRxPage));
  return differs.empty() ? "" : what + ": " + differs;
}

std::string SelftestLoop::dedicated(pmd::DedicatedRxQueue& queue, const MessageTrial& trial) {
  const std::string what = "dedicated " + describe(trial);
  const pmd::TxMessage message = prepare(trial);
  const pmd::DedicatedEntry entry{bench_.iova(SelftestBench::kRxPage), trial.number,
                                  trial.len_bytes};
  if (queue.post(&entry, 1) != 1) {
    return "a dedicated queue takes no entry of " + std::to_string(trial.len_bytes) +
           " bytes: " + pmd::name(queue.last_reject());
  }
  if (pair_->tx().burst(&message, 1) != 1) {
    return what + " is not taken: " + pmd::name(pair_->tx().last_reject());
  }
  bool sent = false;
  bool came = false;
  pmd::EntryDone got{};
  std::string wrong = bench_.wait(what, [&](std::string* error) {
    came = came || queue.reap(&got, 1) == 1;
    return reap(what, &sent, error) && sent && came;
  });
  if (!wrong.empty()) {
    return wrong;
  }
  if (got.status != pmd::Status::kOk || got.cookie != trial.number ||
      got.bytes != trial.len_bytes) {
    return what + " came with '" + pmd::name(got.status) + "', " + std::to_string(got.bytes) +
           " bytes";
  }
  const std::string differs = landing(trial, kRxBytes).compare(bench_.va(SelftestBench::kRxPage));
  return differs.empty() ? "" : what + ": " + differs;
}

std::string SelftestLoop::doorbell(uint16_t info) {
  const std::string what = "doorbell " + std::to_string(info);
  const uint32_t own = bench_.config().dest_id;
  const pmd::TxMessage message{.info = info,
                               .cookie = info,
                               .dest_id = own,
                               .length_bytes = 0,
                               .mbox = 0,
                               .flags = pmd::TxFlags::kDoorbell};
  if (pair_->tx().burst(&message, 1) != 1) {
    return what + " is not taken: " + pmd::name(pair_->tx().last_reject());
  }
  bool sent = false;
  bool came = false;
  pmd::DoorbellEvent got{};
  std::string wrong = bench_.wait(what, [&](std::string* error) {
    came = came || pair_->doorbells().burst(&got, 1) == 1;
    return reap(what, &sent, error) && sent && came;
  });
  if (!wrong.empty()) {
    return wrong;
  }
  if (got.info != info || got.source != own || got.dest_id != own) {
    return what + " came as " + std::to_string(got.info) + " from " + std::to_string(got.source);
  }
  return "";
}

std::string SelftestLoop::remote(const pmd::DmaRequest& request, const std::string& what) {
  if (pair_->dma().post(&request, 1) != 1) {
    return what + " is not taken: " + pmd::name(pair_->dma().last_reject());
  }
  return bench_.wait("the end of a " + what, [&](std::string* wrong) {
    pmd::EntryDone done{};
    if (pair_->dma().reap(&done, 1) == 0) {
      return false;
    }
    if (done.status != pmd::Status::kOk || done.bytes != request.length_bytes) {
      *wrong = what + " ended with '" + std::string(pmd::name(done.status)) + "', " +
               std::to_string(done.bytes) + " bytes";
    }
    return true;
  });
}

}  // namespace rio::tool
