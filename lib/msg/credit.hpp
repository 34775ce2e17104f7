/// @file
/// Credits: how much each peer may still send into its share of the buffers. See
/// docs/decisions/0015-large-data.md, "Credits"; modelled in proof/credit.pml and proof/share.pml.
///
/// A limit is the total number of messages allowed since the session began, sent modulo 2^16. Two
/// totals of one account never differ by more than kWindowMax, so they can be compared.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates.
#pragma once

#include <cassert>
#include <cerrno>
#include <cstdint>

namespace rio::msg {

/// Most credits that one account may have outstanding.
inline constexpr uint16_t kWindowMax = 16384;

/// Control messages that one peer may have in our buffers.
inline constexpr uint16_t kControlCredits = 24;
/// Request records that a peer gets for each context at first, and the step by which they grow on
/// demand.
inline constexpr uint16_t kRecordWindow = 32;

/// The sender's credits for one class of messages to one peer (and context).
class SendAccount {
 public:
  SendAccount() = default;
  /// @param credits initial credits, up to kWindowMax.
  explicit SendAccount(uint16_t credits) : limit_(credits) { assert(credits <= kWindowMax); }

  /// Hot. Credits available now.
  [[nodiscard]] uint16_t available() const { return static_cast<uint16_t>(limit_ - sent_); }
  /// Total of credits taken.
  [[nodiscard]] uint16_t sent() const { return sent_; }
  /// Hot. Take one credit; the caller has checked available().
  void take_known() { ++sent_; }
  /// Take `n` credits, and return them as an account of their own.
  [[nodiscard]] SendAccount split(uint16_t n) {
    assert(n <= available());
    sent_ = static_cast<uint16_t>(sent_ + n);
    return SendAccount(n);
  }
  /// Withhold all remaining credits until put_back(). @return how many.
  [[nodiscard]] uint16_t take_all() {
    const uint16_t left = available();
    sent_ = limit_;
    return left;
  }
  void put_back(uint16_t n) { sent_ = static_cast<uint16_t>(sent_ - n); }
  /// Return the account of a split(), of which no credit was used.
  void join(const SendAccount& part) {
    assert(part.sent_ == 0);
    sent_ = static_cast<uint16_t>(sent_ - part.limit_);
  }

  /// Hot. Take over the peer's newest total. @return 0; -EPROTO if it goes back or too far ahead:
  /// then nothing has changed.
  [[nodiscard]] int on_limit(uint16_t total) {
    if (static_cast<uint16_t>(total - sent_) > kWindowMax ||
        static_cast<uint16_t>(total - limit_) > kWindowMax) [[unlikely]] {
      return -EPROTO;
    }
    limit_ = total;
    return 0;
  }

  /// Hot. Take over the peer's newest total without validation: Retries::hold() bounds what a lying
  /// peer can gain.
  void believe_limit(uint16_t total) { limit_ = total; }

 private:
  uint16_t sent_ = 0;
  uint16_t limit_ = 0;
};

/// The receiver's account of one class of messages from one peer (and context): how many may come,
/// how many are held, and which total to announce.
class RecvAccount {
 public:
  RecvAccount() = default;
  /// @param credits initial credits, announced by other means (WELCOME), up to kWindowMax.
  explicit RecvAccount(uint16_t credits) : limit_(credits), told_(credits), window_(credits) {
    assert(credits <= kWindowMax);
  }

  /// Hot. A message arrived. @return 0, or -EPROTO if the peer had no credit for it.
  [[nodiscard]] int arrive() {
    if (arrived_ == told_) [[unlikely]] {
      return -EPROTO;
    }
    ++arrived_;
    return 0;
  }
  /// Hot. `n` messages arrived. @param n up to left().
  void arrive_known(uint32_t n) { arrived_ = static_cast<uint16_t>(arrived_ + n); }

  /// Hot. A held message was released. @return false: the peer gets its credit back; true: the
  /// credit repays a lend(), and its buffer or record is free for others.
  bool free() {
    assert(held() != 0);
    if (debt_ > 0) [[unlikely]] {
      --debt_;
      return true;
    }
    ++limit_;
    return false;
  }
  /// Hot. Release `n` messages of an account with no debt. @param n up to held().
  void free_known(uint32_t n) { limit_ = static_cast<uint16_t>(limit_ + n); }
  /// Accept no more messages; the limit stays as it is. @return credits that the peer had not used.
  uint32_t close() {
    const uint32_t unused = left();
    arrived_ = limit_;
    window_ = debt_ = 0;
    return unused;
  }

  /// Raise the limit permanently. @param n keeps committed() within kWindowMax; the caller has
  /// reserved as many buffers or records.
  void grow(uint16_t n) {
    assert(committed() + n <= kWindowMax);
    limit_ = static_cast<uint16_t>(limit_ + n);
    window_ = static_cast<uint16_t>(window_ + n);
  }

  /// Raise the limit temporarily: the next `n` credits to be freed are kept back. Used for records,
  /// when a posted receive could match a request for which no record is left. @param n bounds as
  /// for grow().
  void lend(uint16_t n) {
    assert(committed() + n <= kWindowMax);
    limit_ = static_cast<uint16_t>(limit_ + n);
    debt_ = static_cast<uint16_t>(debt_ + n);
  }

  /// Whether nothing more can arrive before a new total is announced: the case for lend().
  [[nodiscard]] bool exhausted() const { return arrived_ == limit_; }
  /// Hot. Messages that may still arrive.
  [[nodiscard]] uint16_t left() const { return static_cast<uint16_t>(limit_ - arrived_); }
  /// Total of messages that arrived.
  [[nodiscard]] uint16_t arrived() const { return arrived_; }
  /// Messages held now.
  [[nodiscard]] uint16_t held() const { return static_cast<uint16_t>(committed() - left()); }
  /// Messages held now, plus those that may still arrive.
  [[nodiscard]] uint16_t committed() const { return static_cast<uint16_t>(window_ + debt_); }
  /// Credits lent and not yet kept back.
  [[nodiscard]] uint16_t debt() const { return debt_; }
  /// The share: what stays committed once debts are repaid.
  [[nodiscard]] uint16_t window() const { return window_; }

  /// Hot. Whether to announce the limit in a message of its own: half of the window is free again,
  /// or more than the sender has left. This bounds the unread announcements to a few, because each
  /// one adds half a window or doubles the previous one.
  [[nodiscard]] bool due() const {
    const auto untold = static_cast<uint16_t>(limit_ - told_);
    const auto known = static_cast<uint16_t>(told_ - arrived_);
    return untold > known || (2u * untold >= window_ && untold != 0);
  }
  /// Hot. Whether the limit has changed since it was last announced.
  [[nodiscard]] bool changed() const { return limit_ != told_; }
  /// The limit.
  [[nodiscard]] uint16_t limit() const { return limit_; }
  /// Hot. The limit, to be put into a message that is sent now; it counts as announced.
  [[nodiscard]] uint16_t tell() {
    told_ = limit_;
    return limit_;
  }

 private:
  uint16_t limit_ = 0;
  uint16_t told_ = 0;
  uint16_t arrived_ = 0;
  uint16_t debt_ = 0;  // credits to keep back as messages are freed
  uint16_t window_ = 0;
};

/// The unassigned part of a fixed number of buffers (or records).
class SharePool {
 public:
  explicit SharePool(uint32_t total) : free_(total), total_(total) {}

  /// Take all of `wanted`, or none. @return whether they were taken.
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

 private:
  uint32_t free_;
  uint32_t total_;
};

}  // namespace rio::msg
