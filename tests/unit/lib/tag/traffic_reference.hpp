/// @file
/// The reference of random traffic: queues of sent messages, by sender, receiver and match bits;
/// and random sizes and memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "lib/tag/tagged_context.hpp"
#include "tests/support/env_number.hpp"
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {

inline constexpr uint64_t kTellingBytes = 8;  // enough bytes to tell which message it is
inline constexpr uint64_t kLongestBytes = 16u << 20;

/// Memory at any address, with guard bytes around it that must not be written.
class Buffer {
 public:
  static constexpr uint8_t kUntouched = 0xEE;

  /// @param offset of the first byte in its page, below kPageBytes.
  Buffer(uint64_t size_bytes, uint64_t offset)
      : bytes_(size_bytes + offset + kPageBytes + 2 * kGuardBytes, kUntouched), size_(size_bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(bytes_.data()) + kGuardBytes;
    at_ = kGuardBytes + (kPageBytes - begin % kPageBytes) % kPageBytes + offset;
  }
  /// A random offset: any of the 64 places in a line, in any line of a page.
  template <class Random>
  [[nodiscard]] static uint64_t any_offset(Random& random) {
    return random() % kPageBytes;
  }

  [[nodiscard]] uint8_t* data() { return bytes_.data() + at_; }
  [[nodiscard]] const uint8_t* data() const { return bytes_.data() + at_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  /// Whether the bytes from `used` on, and all guards, are unchanged.
  [[nodiscard]] bool untouched(uint64_t used) const {
    const auto is_guard = [](uint8_t byte) { return byte == kUntouched; };
    const auto at = bytes_.begin() + static_cast<ptrdiff_t>(at_);
    return std::all_of(bytes_.begin(), at, is_guard) &&
           std::all_of(at + static_cast<ptrdiff_t>(used), bytes_.end(), is_guard);
  }

 private:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint64_t kGuardBytes = 64;
  std::vector<uint8_t> bytes_;
  uint64_t size_;
  uint64_t at_ = 0;
};

/// Sizes of messages, 0 to 16 MiB: each order of magnitude is as likely, and so are sizes at which
/// the protocol changes.
class Sizes {
 public:
  /// @param eager_bytes the eager limit. @param budget_bytes for all long messages together.
  Sizes(uint64_t eager_bytes, uint64_t budget_bytes) : budget_(budget_bytes) {
    for (const uint64_t border :
         {uint64_t{8}, uint64_t{msg::kTinyBytesMax}, uint64_t{regs::kSegmentBytesMax},
          uint64_t{regs::kSegmentBytesMax} - msg::kHeaderBytes - tag::kBitsBytes,
          uint64_t{tag::kDataBytesMax}, uint64_t{regs::kMessageBytesMax}, eager_bytes, kWindowBytes,
          uint64_t{1} << 20, kLongestBytes}) {
      for (const uint64_t size : {border - 1, border, border + 1}) {
        borders_.push_back(size);
      }
    }
  }

  template <class Random>
  [[nodiscard]] uint64_t draw(Random& random) {
    const uint64_t size = any(random);
    if (size <= kShortBytes) {
      return size;
    }
    if (size > budget_) {
      return size % (kShortBytes + 1);
    }
    budget_ -= size;
    return size;
  }
  /// The size of a short message, which does not count against the budget.
  template <class Random>
  [[nodiscard]] uint64_t draw_short(Random& random) {
    return any(random) % (kShortBytes + 1);
  }

 private:
  static constexpr uint64_t kShortBytes = 9000;
  static constexpr uint64_t kWindowBytes = 64 * regs::kMessageBytesMax;  // of a transfer

  template <class Random>
  [[nodiscard]] uint64_t any(Random& random) const {
    if (random() % 4 == 0) {
      return borders_[random() % borders_.size()];
    }
    constexpr double kOctaves = 24;
    const double octave = kOctaves * static_cast<double>(random() % 100000) / 100000;
    return static_cast<uint64_t>(std::exp2(octave)) - 1;
  }

  uint64_t budget_;
  std::vector<uint64_t> borders_;
};

/// Immediate data of the message with that number, if it has any.
[[nodiscard]] inline tag::Immediate immediate_of(uint64_t number) {
  const bool there = number % 3 == 0;
  return {there ? ~number * 0x9E3779B97F4A7C15u : 0, there};
}

/// A received message, for comparison with the reference.
struct Received {
  tag::Address from;
  uint32_t to;
  uint64_t bits;
  uint64_t length_bytes;  ///< the true length
  int status;
  tag::Immediate immediate;
  uint64_t taken;  ///< when its receive was posted, or its handle was taken
  const Buffer& buffer;
};

/// Functions that find an error return its text; otherwise the text is empty.
class Reference {
 public:
  using Key = std::tuple<tag::Address, uint32_t, uint64_t>;  // sender, receiver, bits

  /// @param number which no other message of its sender has.
  void sent(const Key& key, uint64_t number, uint64_t length_bytes) {
    queues_[key].push_back({number, length_bytes, false});
    ++waiting_;
    ++owed_[std::get<1>(key)];
  }
  /// Notes that this message need not arrive.
  void lost(const Key& key, uint64_t number) {
    for (Sent& each : queues_[key]) {
      if (each.number == number) {
        give_up(key, &each);
      }
    }
  }
  /// Notes that messages with a key for which `which(key)` is true need not arrive.
  template <class Which>
  void all_lost(Which&& which) {
    for (auto& [key, queue] : queues_) {
      for (Sent& each : queue) {
        if (which(key)) {
          give_up(key, &each);
        }
      }
    }
  }

  [[nodiscard]] std::string received(const Received& what) {
    const Key key = {what.from, what.to, what.bits};
    auto& queue = queues_[key];
    // A message sent on request may be done after others that were sent behind it.
    const auto sent = std::ranges::find_if(queue, [&](const Sent& each) { return is(each, what); });
    if (sent == queue.end()) {
      return "a message that was never sent, or bytes around the buffer were written";
    }
    if (what.status != (sent->length_bytes > what.buffer.size() ? -EMSGSIZE : 0)) {
      return "status " + std::to_string(what.status);
    }
    std::string wrong;
    if (sent->length_bytes >= kTellingBytes && what.buffer.size() >= kTellingBytes) {
      wrong = check_order(matched_[key], sent->number, what.taken);
    }
    give_up(key, &*sent);
    queue.erase(sent);
    return wrong;
  }

  /// Number of messages that have not arrived yet.
  [[nodiscard]] uint64_t waiting() const { return waiting_; }
  /// Number of messages that one receiver has yet to get.
  [[nodiscard]] uint64_t owed(uint32_t to) const {
    const auto at = owed_.find(to);
    return at == owed_.end() ? 0 : at->second;
  }
  /// Length of the longest message that may still arrive there.
  [[nodiscard]] uint64_t longest(uint32_t to) const {
    uint64_t longest = 0;
    for (const auto& [key, queue] : queues_) {
      for (const Sent& each : queue) {
        longest = std::get<1>(key) == to ? std::max(longest, each.length_bytes) : longest;
      }
    }
    return longest;
  }

 private:
  struct Sent {
    uint64_t number;
    uint64_t length_bytes;
    bool lost;
  };

  void give_up(const Key& key, Sent* sent) {
    if (!std::exchange(sent->lost, true)) {
      --waiting_;
      --owed_[std::get<1>(key)];
    }
  }

  /// Whether the message is the one sent, and no byte beyond it is written.
  [[nodiscard]] static bool is(const Sent& sent, const Received& what) {
    const tag::Immediate immediate = immediate_of(sent.number);
    if (what.length_bytes != sent.length_bytes || what.immediate.there != immediate.there ||
        (immediate.there && what.immediate.value != immediate.value)) {
      return false;
    }
    const uint64_t there = std::min(what.buffer.size(), sent.length_bytes);
    const std::vector<uint8_t> wanted = pattern(sent.number, there);
    return std::equal(wanted.begin(), wanted.end(), what.buffer.data()) &&
           what.buffer.untouched(there);
  }

  /// Messages of one sender with the same bits must be matched in the order of sending.
  [[nodiscard]] static std::string check_order(std::map<uint64_t, uint64_t>& matched,
                                               uint64_t number, uint64_t taken) {
    const auto [at, is_new] = matched.emplace(number, taken);
    if (!is_new) {
      return "twice";
    }
    const bool after_older = at == matched.begin() || std::prev(at)->second < taken;
    const bool before_younger = std::next(at) == matched.end() || std::next(at)->second > taken;
    return after_older && before_younger ? "" : "out of order";
  }

  std::map<Key, std::deque<Sent>> queues_;
  std::map<Key, std::map<uint64_t, uint64_t>> matched_;  // message number to time of its post
  std::map<uint32_t, uint64_t> owed_;
  uint64_t waiting_ = 0;
};

}  // namespace rio::test
