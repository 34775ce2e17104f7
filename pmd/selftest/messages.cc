// Messages, doorbells, dedicated queues.
#include <algorithm>
#include <numeric>

#include "pmd/selftest/parts.hpp"

namespace rio::selftest {
std::vector<uint32_t> some_lengths() {
  std::vector<uint32_t> lengths(64);
  std::iota(lengths.begin(), lengths.end(), 1);
  for (uint32_t edge = regs::kSegmentBytesMax; edge <= regs::kMessageBytesMax;
       edge += regs::kSegmentBytesMax) {
    for (const uint32_t len : {edge - 8, edge - 1, edge, edge + 1}) {
      if (len <= regs::kMessageBytesMax) {
        lengths.push_back(len);
      }
    }
  }
  return lengths;
}

std::vector<MessageTrial> length_trials(bool quick) {
  std::vector<MessageTrial> trials;
  std::vector<uint32_t> lengths(regs::kMessageBytesMax);
  std::iota(lengths.begin(), lengths.end(), 1);
  for (const uint32_t len : quick ? some_lengths() : lengths) {
    trials.push_back({.number = trials.size(),
                      .len_bytes = len,
                      .mbox = static_cast<uint8_t>(len % regs::kMultiMailboxes)});
  }
  return trials;
}

std::vector<MessageTrial> inline_trials(const pmd::Caps& caps, bool quick) {
  const uint32_t longest =
      caps.inline_bytes != 0 && caps.wide ? regs::kWideInlineBytes : caps.inline_bytes;
  std::vector<MessageTrial> trials;
  for (uint32_t len = 1; len <= longest; ++len) {
    for (uint32_t mbox = 0; mbox < regs::kMailboxes; mbox += quick ? 21 : 1) {
      trials.push_back({.number = trials.size(),
                        .len_bytes = len,
                        .mbox = static_cast<uint8_t>(mbox),
                        .is_inline = true});
    }
  }
  return trials;
}

std::vector<MessageTrial> segment_trials() {
  std::vector<MessageTrial> trials;
  for (uint32_t ssize = 8; ssize <= regs::kSegmentBytesMax; ssize *= 2) {
    for (uint32_t segments = 1; segments <= regs::kSegmentsMax; ++segments) {
      // The last segment whole, one byte short, and of one byte.
      for (const uint32_t len :
           {segments * ssize, segments * ssize - 1, (segments - 1) * ssize + 1}) {
        trials.push_back({.number = trials.size(),
                          .len_bytes = len,
                          .ssize_bytes = ssize,
                          .mbox = static_cast<uint8_t>(segments % regs::kMultiMailboxes)});
      }
    }
  }
  return trials;
}

std::string try_messages(Exchange& exchange, std::span<const MessageTrial> trials, Tally* tally) {
  std::string wrong;
  for (const MessageTrial& trial : trials) {
    if (wrong = exchange.message(trial); !wrong.empty()) {
      return wrong;
    }
    tally->add(1, trial.len_bytes, trials.size());
  }
  return wrong;
}

std::string try_doorbells(Exchange& exchange, bool quick, Tally* tally) {
  const uint32_t stride = quick ? 0x101 : 1;
  std::string wrong;
  for (uint32_t info = 0; wrong.empty() && info <= 0xFFFF; info += stride) {
    wrong = exchange.doorbell(static_cast<uint16_t>(info));
    tally->add(1, 0, 0x10000 / stride);
  }
  for (uint32_t bit = 0; wrong.empty() && bit < 16; ++bit) {
    wrong = exchange.doorbell(static_cast<uint16_t>(1u << bit));
    tally->add(1, 0, 0x10000 / stride);
  }
  return wrong;
}

std::string try_dedicated(Exchange& exchange, uint32_t index, uint32_t stride, Tally* tally) {
  const auto mbox = static_cast<uint8_t>(index % regs::kMultiMailboxes);
  const std::string name = "dedicated queue " + std::to_string(index);
  pmd::QueuePair& pair = *exchange.to().pair;
  pmd::DedicatedRxQueue* queue = nullptr;
  if (pair.open_dedicated(index, exchange.from().dest_id, mbox, &queue) != 0) {
    return name + " cannot be opened";
  }
  stride = std::max(stride, exchange.to().card->caps().dedicated_size_align);
  std::string wrong;
  for (uint32_t len = stride; wrong.empty() && len <= regs::kMessageBytesMax; len += stride) {
    wrong = exchange.dedicated(*queue, {.number = tally->done + 1, .len_bytes = len, .mbox = mbox});
    tally->add(1, len, 0);
  }
  if (wrong.empty() && pair.close_dedicated(index) != 0) {
    return name + " does not close";
  }
  return wrong.empty() ? "" : name + ": " + wrong;
}

}  // namespace rio::selftest
