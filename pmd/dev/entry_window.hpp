/// @file
/// Tells which entries of a ring the card still has, and keeps the user's cookies for them.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "pmd/bus/bus.hpp"

namespace rio::pmd {

/// The outstanding entries of one ring. Entries are posted in order and complete in any order; the
/// outstanding ones lie in [oldest, head), which is never longer than the ring, so a slot is not
/// used again while its entry is there. As long as entries complete in the order of their posting
/// nothing is kept but the two indices; the others leave a mark until the oldest ones catch up. An
/// entry that the others have left far behind is set aside, as a straggler: the card has copied it,
/// so its slot is free, and it no longer holds up the ring. Nothing here comes from the card. One
/// thread; complete() and the accessors are hot.
class EntryWindow {
 public:
  EntryWindow() = default;
  ~EntryWindow() {
    if (bus_ != nullptr) {
      bus_->shared_free(stragglers_);
    }
  }
  EntryWindow(const EntryWindow&) = delete;
  EntryWindow& operator=(const EntryWindow&) = delete;

  /// Call once. @param bus gives the memory (Bus::shared_alloc()), outlives the object. @param log2
  /// of the ring's entries; @param start_index of the first entry. @param stragglers_max how many
  /// entries may be set aside, less than the ring has. @return 0 or -ENOMEM.
  [[nodiscard]] int create(Bus& bus, uint32_t log2, uint32_t start_index,
                           uint32_t stragglers_max = 0) {
    const size_t count = size_t{1} << log2;
    void* const memory =
        bus.shared_alloc(stragglers_max * sizeof *stragglers_ +
                             count * (sizeof *cookies_ + sizeof *sizes_ + sizeof *marks_),
                         kCacheLineBytes);
    if (memory == nullptr) {
      return -ENOMEM;
    }
    bus_ = &bus;
    stragglers_ = static_cast<Straggler*>(memory);
    stragglers_max_ = stragglers_max;
    cookies_ = reinterpret_cast<uint64_t*>(stragglers_ + stragglers_max);
    sizes_ = reinterpret_cast<uint32_t*>(cookies_ + count);
    marks_ = reinterpret_cast<uint8_t*>(sizes_ + count);
    head_ = start_index;
    oldest_ = start_index;
    mask_ = static_cast<uint32_t>(count - 1);
    limit_ = mask_ + 1;
    return 0;
  }

  [[nodiscard]] uint32_t head() const { return head_; }
  [[nodiscard]] uint32_t oldest() const { return oldest_; }
  [[nodiscard]] uint32_t mask() const { return mask_; }
  /// Entries in [oldest, head): those that take room, completed ones behind a straggler included.
  [[nodiscard]] uint32_t used() const { return head_ - oldest_; }
  /// Entries that may be posted: with the stragglers not more than there are completions.
  [[nodiscard]] uint32_t room() const { return limit_ - used(); }
  /// Entries that the card has: those used, less those completed out of order, and the stragglers.
  [[nodiscard]] uint32_t outstanding() const { return used() - marked_ + straggling(); }
  [[nodiscard]] uint32_t straggling() const { return mask_ + 1 - limit_; }
  [[nodiscard]] uint32_t stragglers_max() const { return stragglers_max_; }
  /// Set fewer entries aside than create() was told. Call it before the first post.
  void limit_stragglers(uint32_t most) { stragglers_max_ = std::min(stragglers_max_, most); }

  /// Slots in [oldest, head) that completed out of order, or are not the first of their entry.
  [[nodiscard]] uint32_t marked() const { return marked_; }
  /// Entries that may be posted before the slots wrap.
  [[nodiscard]] uint32_t room_in_a_row() const {
    const uint32_t to_wrap = mask_ + 1 - (head_ & mask_);
    return room() < to_wrap ? room() : to_wrap;
  }
  /// Whether an entry in [oldest, head) is outstanding.
  [[nodiscard]] bool is_out(uint32_t index) const { return marks_[index & mask_] == 0; }
  /// Whether an entry is in [oldest, head), and outstanding. @param index any value.
  [[nodiscard]] bool has(uint32_t index) const { return index - oldest_ < used() && is_out(index); }

  /// Outstanding entries of one slot each, from the oldest on, before the slots wrap: while their
  /// completions come in order, marks need not be read. Without index ~0, which looks like one that
  /// the card has not written.
  [[nodiscard]] uint32_t plain_in_a_row() const {
    return std::min({plain(), mask_ + 1 - (oldest_ & mask_), ~oldest_});
  }
  /// Like plain_in_a_row(), but across the end of the slots.
  [[nodiscard]] uint32_t plain() const { return marked_ == 0 ? used() : 0; }

  /// The entry `count` outstanding entries before another, in the order of their posting. @param
  /// index from the card, any value. @return false: there is none.
  [[nodiscard]] bool find_before(uint32_t index, uint32_t count, uint32_t* out) const {
    const Straggler* aside = stragglers_ + straggling();
    if (index - oldest_ < used()) {
      for (; count != 0 && index != oldest_; count -= marks_[index & mask_] != kSecond ? 1 : 0) {
        --index;
      }
      if (count == 0) {
        *out = index;
        return true;
      }
    } else if (aside = find_straggler(index); aside == nullptr) {
      return false;
    }
    if (static_cast<size_t>(aside - stragglers_) < count) {
      return false;
    }
    *out = aside[-static_cast<ptrdiff_t>(count)].index;
    return true;
  }
  /// The outstanding entry behind another, or head if there is none. @param index outstanding.
  [[nodiscard]] uint32_t next(uint32_t index) const {
    if (index - oldest_ >= used()) {
      const Straggler* const aside = find_straggler(index) + 1;
      return aside == stragglers_ + straggling() ? oldest_ : aside->index;
    }
    do {
      ++index;
    } while (index != head_ && marks_[index & mask_] == kSecond);
    return index;
  }

  /// Cookies and sizes by slot.
  [[nodiscard]] uint64_t* cookies() const { return cookies_; }
  [[nodiscard]] uint32_t* sizes() const { return sizes_; }

  /// An entry that was set aside.
  struct Straggler {
    uint64_t cookie;
    uint32_t index;
    uint32_t size;  ///< bytes of its message
  };
  /// Whether the oldest entry should be set aside, since an entry far behind it has completed: the
  /// card has passed over it, or waits for its answer only. @param completed index of that entry.
  [[nodiscard]] bool has_straggler(uint32_t completed) const {
    const auto ahead = static_cast<int32_t>(completed - oldest_);
    return ahead > static_cast<int32_t>(mask_ / 4) && straggling() < stragglers_max_;
  }
  /// Set the oldest entry aside. @param size of it.
  void set_aside(uint32_t size) {
    stragglers_[straggling()] = {cookies_[oldest_ & mask_], oldest_, size};
    --limit_;
    ++oldest_;
    catch_up();
  }
  [[nodiscard]] bool is_straggler(uint32_t index) const { return find_straggler(index) != nullptr; }
  /// A straggler has completed: forget it. @param index from the card, any value. @return false: no
  /// straggler has that index.
  [[nodiscard]] bool complete_straggler(uint32_t index, Straggler* out) {
    Straggler* const found = find_straggler(index);
    if (found == nullptr) {
      return false;
    }
    *out = *found;
    std::move(found + 1, stragglers_ + straggling(), found);
    ++limit_;
    return true;
  }
  /// Call `each(cookie)` for all outstanding entries.
  template <class Each>
  void for_each(Each&& each) const {
    for (uint32_t i = 0; i < straggling(); ++i) {
      each(stragglers_[i].cookie);
    }
    for (uint32_t index = oldest_; index != head_; ++index) {
      if (is_out(index)) {
        each(cookies_[index & mask_]);
      }
    }
  }

  /// Note that `count` entries, at most room(), were written.
  void post(uint32_t count) { head_ += count; }
  /// Note that an entry of several slots, at most room(), was written at head.
  void post_several(uint32_t slots) {
    ++head_;
    mark(slots - 1);
  }
  /// Note that `slots` slots, at most room(), are not used. They take room until an entry behind
  /// them has completed: before that, the card may not have passed them.
  void skip(uint32_t slots) { mark(slots); }
  /// Note that the `count` oldest, at most plain_in_a_row(), have completed in order.
  void complete_in_order(uint32_t count) { oldest_ += count; }
  /// Note that an entry has completed. @param index from the card, any value. @return false: no
  /// entry of that index is outstanding in the window, and nothing has changed.
  [[nodiscard]] bool complete(uint32_t index) {
    if (!has(index)) [[unlikely]] {
      return false;
    }
    if (index != oldest_) {
      marks_[index & mask_] = kDone;
      ++marked_;
    } else {
      ++oldest_;
    }
    if (marked_ != 0) {
      catch_up();
    }
    return true;
  }

 private:
  static constexpr size_t kCacheLineBytes = 64;
  static constexpr uint8_t kDone = 1;    // completed, waits for older ones
  static constexpr uint8_t kSecond = 2;  // not the first slot of an entry

  /// @return null: no straggler has that index.
  [[nodiscard]] Straggler* find_straggler(uint32_t index) const {
    Straggler* const end = stragglers_ + straggling();
    Straggler* const found =
        std::find_if(stragglers_, end, [index](const Straggler& s) { return s.index == index; });
    return found != end ? found : nullptr;
  }

  void mark(uint32_t slots) {
    marked_ += slots;
    for (; slots != 0; --slots, ++head_) {
      marks_[head_ & mask_] = kSecond;
    }
  }

  // Move `oldest` over the marks before it. Each entry is passed once, so a completion costs a
  // constant on the average.
  void catch_up() {
    while (oldest_ != head_ && marks_[oldest_ & mask_] != 0) {
      marks_[oldest_ & mask_] = 0;
      --marked_;
      ++oldest_;
    }
  }

  uint32_t head_ = 0;
  uint32_t oldest_ = 0;
  uint32_t mask_ = 0;
  uint32_t marked_ = 0;  // marks other than 0, all of them in [oldest, head)
  uint32_t limit_ = 0;   // entries of the ring, less the stragglers
  uint64_t* cookies_ = nullptr;
  uint32_t* sizes_ = nullptr;
  uint8_t* marks_ = nullptr;
  Bus* bus_ = nullptr;               // not used by bursts
  Straggler* stragglers_ = nullptr;  // the allocation, by index; the other arrays lie behind it
  uint32_t stragglers_max_ = 0;
};

}  // namespace rio::pmd
