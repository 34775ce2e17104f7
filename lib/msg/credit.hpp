/// @file
/// Credits: how much each peer may still send into its share of the buffers. See
/// docs/decisions/0015-large-data.md, "Credits"; modelled in model/credit.pml and model/share.pml.
///
/// A limit is a total of messages since the session began, told modulo 2^16. The difference of two
/// totals of one account is never above kWindowMax, so that they can be compared.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates.
#pragma once

#include <cassert>
#include <cerrno>
#include <cstdint>

namespace rio::msg {

/// Most that an account may have out at once.
inline constexpr uint16_t kWindowMax = 16384;

/// Control messages that a peer may have in our buffers.
inline constexpr uint16_t kControlCredits = 8;
/// Records of a peer and context at first, and by how many they grow on demand.
inline constexpr uint16_t kRecordWindow = 16;

/// Sender's side of one class of messages to one peer (and context).
class SendAccount {
 public:
  SendAccount() = default;
  /// @param credits of the first moment, up to kWindowMax.
  explicit SendAccount(uint16_t credits) : limit_(credits) { assert(credits <= kWindowMax); }

  /// Hot. How many may go now.
  [[nodiscard]] uint16_t available() const { return static_cast<uint16_t>(limit_ - sent_); }
  /// How many were taken.
  [[nodiscard]] uint16_t sent() const { return sent_; }
  /// Hot. Take one that is there: available() was asked.
  void take_known() { ++sent_; }
  /// Take so many, which are to be taken from an account of their own.
  [[nodiscard]] SendAccount split(uint16_t n) {
    assert(n <= available());
    sent_ = static_cast<uint16_t>(sent_ + n);
    return SendAccount(n);
  }
  /// All that are left are taken away, until put_back(). @return how many.
  [[nodiscard]] uint16_t take_all() {
    const uint16_t left = available();
    sent_ = limit_;
    return left;
  }
  void put_back(uint16_t n) { sent_ = static_cast<uint16_t>(sent_ - n); }
  /// Give back the account of a split(), from which none was taken.
  void join(const SendAccount& part) {
    assert(part.sent_ == 0);
    sent_ = static_cast<uint16_t>(sent_ - part.limit_);
  }

  /// Hot. Take one credit. @return whether there was one.
  [[nodiscard]] bool take() {
    if (sent_ == limit_) [[unlikely]] {
      return false;
    }
    ++sent_;
    return true;
  }

  /// Hot. The peer's newest total. @return 0, or -EPROTO for one that goes back or too far ahead;
  /// then nothing has changed.
  [[nodiscard]] int on_limit(uint16_t total) {
    if (static_cast<uint16_t>(total - sent_) > kWindowMax ||
        static_cast<uint16_t>(total - limit_) > kWindowMax) [[unlikely]] {
      return -EPROTO;
    }
    limit_ = total;
    return 0;
  }

  /// Hot. As on_limit(), without a check: what is believed of a liar is bounded elsewhere
  /// (Retries::hold()).
  void believe_limit(uint16_t total) { limit_ = total; }

 private:
  uint16_t sent_ = 0;
  uint16_t limit_ = 0;
};

/// Receiver's side of the same: what may come, what is here, what is to be told.
class RecvAccount {
 public:
  RecvAccount() = default;
  /// @param credits of the first moment, told by other means (WELCOME), up to kWindowMax.
  explicit RecvAccount(uint16_t credits) : limit_(credits), told_(credits), window_(credits) {
    assert(credits <= kWindowMax);
  }

  /// Hot. A message came. @return 0, or -EPROTO where nothing was told that allows it.
  [[nodiscard]] int arrive() {
    if (arrived_ == told_) [[unlikely]] {
      return -EPROTO;
    }
    ++arrived_;
    return 0;
  }
  /// Hot. So many came. @param n up to left().
  void arrive_known(uint32_t n) { arrived_ = static_cast<uint16_t>(arrived_ + n); }

  /// Hot. A message that came is held no more. @return false: its credit will be told again; true:
  /// it is kept back (lend()), and what it stood for is free for others.
  bool free() {
    assert(held() != 0);
    if (debt_ > 0) [[unlikely]] {
      --debt_;
      return true;
    }
    ++limit_;
    return false;
  }
  /// Hot. So many, of an account that keeps nothing back. @param n up to held().
  void free_known(uint32_t n) { limit_ = static_cast<uint16_t>(limit_ + n); }
  /// Nothing more is taken, and the total stays as it is. @return how many had not come.
  uint32_t close() {
    const uint32_t unused = left();
    arrived_ = limit_;
    window_ = debt_ = 0;
    return unused;
  }

  /// Raise the limit for good. @param n keeps committed() within kWindowMax; the caller has taken
  /// it from what is free.
  void grow(uint16_t n) {
    assert(committed() + n <= kWindowMax);
    limit_ = static_cast<uint16_t>(limit_ + n);
    window_ = static_cast<uint16_t>(window_ + n);
  }

  /// Raise it for a while: as many of the next to be freed are kept back. For records, when a
  /// posted receive could match a message that has no place. Bounds as grow().
  void lend(uint16_t n) {
    assert(committed() + n <= kWindowMax);
    limit_ = static_cast<uint16_t>(limit_ + n);
    debt_ = static_cast<uint16_t>(debt_ + n);
  }

  /// Nothing more can come before the next total is told: the case for lend().
  [[nodiscard]] bool exhausted() const { return arrived_ == limit_; }
  /// Hot. Messages that may come.
  [[nodiscard]] uint16_t left() const { return static_cast<uint16_t>(limit_ - arrived_); }
  /// Messages that came.
  [[nodiscard]] uint16_t arrived() const { return arrived_; }
  /// Messages here.
  [[nodiscard]] uint16_t held() const { return static_cast<uint16_t>(committed() - left()); }
  /// Messages here, and those that may come.
  [[nodiscard]] uint16_t committed() const { return static_cast<uint16_t>(window_ + debt_); }
  /// How many are lent, and not kept back yet.
  [[nodiscard]] uint16_t debt() const { return debt_; }
  /// The share: what is committed once debts are paid.
  [[nodiscard]] uint16_t window() const { return window_; }

  /// Hot. Whether enough has come free to tell of it in a message for that alone: half of the
  /// window, or more than the sender has left, since what is held may be held for long. So no more
  /// than a few are ever unread: each tells half a window, or twice what the one before has told,
  /// and no more than a window is left to be told of before the sender has read one.
  [[nodiscard]] bool due() const {
    const auto untold = static_cast<uint16_t>(limit_ - told_);
    const auto known = static_cast<uint16_t>(told_ - arrived_);
    return untold > known || (2u * untold >= window_ && untold != 0);
  }
  /// Hot. Whether a total is new to the peer.
  [[nodiscard]] bool changed() const { return limit_ != told_; }
  /// The total.
  [[nodiscard]] uint16_t limit() const { return limit_; }
  /// Hot. The total, for a message that goes now.
  [[nodiscard]] uint16_t tell() {
    told_ = limit_;
    return limit_;
  }

 private:
  uint16_t limit_ = 0;
  uint16_t told_ = 0;
  uint16_t arrived_ = 0;
  uint16_t debt_ = 0;  // of those freed next, not to be told again
  uint16_t window_ = 0;
};

/// The rest of a fixed number of buffers (or records): never given twice.
class SharePool {
 public:
  explicit SharePool(uint32_t total) : free_(total), total_(total) {}

  /// @return how many of `wanted` there are to have; they are taken.
  [[nodiscard]] uint32_t take(uint32_t wanted) {
    const uint32_t taken = wanted < free_ ? wanted : free_;
    free_ -= taken;
    return taken;
  }
  /// All or nothing. @return whether they were taken.
  [[nodiscard]] bool take_all(uint32_t wanted) {
    if (wanted > free_) {
      return false;
    }
    free_ -= wanted;
    return true;
  }
  void put(uint32_t n) {
    assert(n <= total_ - free_);
    free_ += n;
  }
  [[nodiscard]] uint32_t free() const { return free_; }
  [[nodiscard]] uint32_t total() const { return total_; }

 private:
  uint32_t free_;
  uint32_t total_;
};

}  // namespace rio::msg
