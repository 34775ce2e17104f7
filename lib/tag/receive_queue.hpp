/// @file
/// Posted receives: an arriving message takes the earliest posted one that matches it.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/tag/entry.hpp"

namespace rio::tag {

/// Receives that ignore the usual bits, mostly none, are found by their key (source, bits), where
/// ANY is a source as any other: two look-ups at the most. Those that ignore others stand in a
/// list, walked up to the first that matches and no further than the age of what the look-ups
/// found. The first receive in an empty table says which bits are usual: MPI libraries over
/// libfabric keep a few flags in each tag, which all receives ignore. One thread.
class ReceiveQueue {
 public:
  /// Out of a queue by cancel_if(), linked by age.
  using Gone = Fifo<Receive, &Receive::by_age>;

  /// @param receives that there will be room for at once. @param first_number of the first receive,
  /// for tests of the wrap. @return 0, -EINVAL, -ENOMEM.
  [[nodiscard]] int create(const HashSeed& seed, uint64_t receives, uint64_t first_number);

  /// @param receive that is nowhere; it is the queue's until it is taken or cancelled.
  void add(Receive& receive);
  /// Bits that receives in the table ignore.
  [[nodiscard]] uint64_t usual() const { return table_.ignored(); }
  /// Hot, so nothing is asserted. The same for one of a single source, which ignores usual() bits.
  void add_whole(Receive& receive) {
    receive.place = Place::kTable;
    receive.age = wild_posted_;
    ++posted_;
    table_.add(receive);
  }

  /// Hot. Takes out the earliest posted receive that matches. @return null if none does.
  [[nodiscard]] Receive* take(uint32_t source, uint64_t bits) {
    Receive** at = table_.find(source, bits);
    if (wild_ != 0) [[unlikely]] {
      return take_among_all(at, source, bits);
    }
    return *at != nullptr ? take_first(at) : nullptr;
  }

  /// Hot. Receives for messages of one source, each as take() gives it. Those of equal bits in a
  /// row are looked for once. While there is a run, nothing else is done with the queue.
  class Run {
   public:
    Run(ReceiveQueue& queue, uint32_t source) : queue_(queue), source_(source) {}
    ~Run() { remove_taken(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    [[nodiscard]] Receive* take(uint64_t bits) {
      if (next_ == nullptr || bits != bits_) {  // that only flags differ in is looked up again
        remove_taken();
        if (queue_.wild_ != 0) [[unlikely]] {
          return queue_.take(source_, bits);
        }
        at_ = queue_.table_.find(source_, bits);
        next_ = *at_;
        bits_ = bits;
        if (next_ == nullptr) [[unlikely]] {
          return nullptr;
        }
      }
      Receive* const receive = next_;
      next_ = Table::next(*receive);
      receive->place = Place::kNowhere;
      ++taken_;
      return receive;
    }

   private:
    /// Remove the taken entries from the table.
    void remove_taken() {
      if (taken_ != 0) {
        queue_.table_.remove_before(at_, next_);
        queue_.gone_ += std::exchange(taken_, 0);
        next_ = nullptr;
      }
    }

    ReceiveQueue& queue_;
    uint32_t source_;
    uint32_t taken_ = 0;  // of this key
    uint64_t bits_ = 0;
    Receive** at_ = nullptr;
    Receive* next_ = nullptr;
  };

  /// Takes one out, at a cost that does not depend on how many there are.
  /// @return 0, or -ENOENT if it is not here: never posted, or matched already.
  [[nodiscard]] int cancel(Receive& receive);

  /// Cold, looks at all: takes out those that `wanted(const Receive&)`. @return them, in no order;
  /// valid until one of them is posted again.
  template <class Wanted>
  [[nodiscard]] Gone cancel_if(Wanted&& wanted) {
    Gone gone;
    table_.for_each([&](Receive& receive) {
      if (wanted(static_cast<const Receive&>(receive))) {
        gone.append(receive);
      }
    });
    gone.for_each([&](Receive& receive) {
      table_.remove(receive);
      left(receive);
    });
    masked_.for_each([&](Receive& receive) {
      if (wanted(static_cast<const Receive&>(receive))) {
        masked_.remove(receive);
        left(receive);
        gone.append(receive);
      }
    });
    return gone;
  }

  /// Cold, looks at all: whether there is one that `wanted(const Receive&)`.
  template <class Wanted>
  [[nodiscard]] bool any_of(Wanted&& wanted) {
    bool found = false;
    table_.for_each([&](Receive& receive) { found = found || wanted(receive); });
    masked_.for_each([&](const Receive& receive) { found = found || wanted(receive); });
    return found;
  }

  [[nodiscard]] uint64_t count() const { return posted_ - gone_; }
  /// Of the next receive. Grows with each.
  [[nodiscard]] uint64_t posted() const { return posted_; }
  /// Number of entries of ANY source, or with unusual ignored bits. While there are any, take()
  /// costs more.
  [[nodiscard]] uint64_t wild() const { return wild_; }
  [[nodiscard]] uint64_t longest_chain() const { return table_.longest_chain(); }

 private:
  using Table = KeyTable<Receive, &Receive::by_key, true>;

  /// Whether a receive was posted before a wild one. Ages wrap; those of two receives that are
  /// posted at once are never 2^63 apart.
  static bool is_older(const Receive& receive, const Receive& wild) {
    return static_cast<int64_t>(receive.age - wild.age) < 0;
  }

  Receive* take_first(Receive** at) {
    Receive* receive = *at;
    table_.remove_first(at);
    receive->place = Place::kNowhere;
    ++gone_;
    return receive;
  }

  [[nodiscard]] bool is_wild(const Receive& receive) const {
    return receive.source == kAnySource || receive.place == Place::kMasked;
  }
  void left(Receive& receive) {
    wild_ -= is_wild(receive);
    listed_ -= receive.place == Place::kMasked;
    receive.place = Place::kNowhere;
    ++gone_;
  }

  /// More are no flags, but a receive of any tag.
  static constexpr int kUsualMax = 8;

  Receive* take_among_all(Receive** at, uint32_t source, uint64_t bits);

  Table table_;
  uint64_t posted_ = 0;
  uint64_t gone_ = 0;         // posted ones that are not here any more
  uint64_t wild_posted_ = 0;  // the age of the youngest wild receive
  uint64_t wild_ = 0;
  uint64_t listed_ = 0;
  Gone masked_;
};

}  // namespace rio::tag
