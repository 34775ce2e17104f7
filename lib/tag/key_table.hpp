/// @file
/// Entries by their whole key, the oldest of a key first: a hash table whose links lie in the
/// entries.
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "lib/tag/key.hpp"

namespace rio::tag {

/// Entries of one key form a list, oldest first. Its first entry stands for the key in the bucket's
/// chain, so a chain is as long as there are keys in it, however many entries they have.
template <class Node>
struct KeyLinks {
  Node* next_key;  // of the first: another key of the bucket
  Node* next;      // the next younger one of this key; null: the youngest
  Node* prev;      // the next older one of this key; of the first: the youngest
};

/// @tparam kLinks the links that this table uses.
/// @tparam kBySource the key is source and bits; else the bits alone.
///
/// Adding, finding and removing cost the same however many entries there are. Memory is four
/// pointers for each key, at the most there ever were, rounded up to a power of two: add() doubles
/// the table as keys come, which moves each key once, so the cost per key is bounded on the
/// average; reserve() does it beforehand. If there is no memory to grow, chains become longer and
/// nothing fails: grow_failures() counts that. One thread.
template <class Node, KeyLinks<Node> Node::*kLinks, bool kBySource>
class KeyTable {
 public:
  static constexpr uint64_t kKeysMin = 64;
  static constexpr uint64_t kKeysMax = uint64_t{1} << 32;

  /// @param keys that there will be room for at least. @return 0, -EINVAL past kKeysMax, -ENOMEM.
  [[nodiscard]] int create(const HashSeed& seed, uint64_t keys) {
    seed_ = seed;
    return reserve(std::max(keys, kKeysMin));
  }

  /// Control path: room for so many keys, so that add() need not grow. Entries stay.
  /// @return 0, -EINVAL past kKeysMax, -ENOMEM; the table is as before then.
  [[nodiscard]] int reserve(uint64_t keys) {
    if (keys > kKeysMax) {
      return -EINVAL;
    }
    const uint64_t count = std::bit_ceil(keys * kBucketsPerKey);
    if (count <= buckets()) {
      return 0;
    }
    std::unique_ptr<Node*[]> buckets(new (std::nothrow) Node*[count]());
    if (!buckets) {
      return -ENOMEM;
    }
    move_to(std::move(buckets), count);
    return 0;
  }

  /// Of an empty table: bits that keys do not have, whatever entries and look-ups have there.
  void ignore(uint64_t bits) {
    ignored_ = bits;
    keep_ = ~bits;
    last_bucket_ = &buckets_[0];
  }
  [[nodiscard]] uint64_t ignored() const { return ignored_; }

  /// Where the oldest entry of a key hangs; *find() is null if there is none. Valid until the table
  /// changes.
  [[nodiscard]] Node** find(uint32_t source, uint64_t bits) {
    Node** at = &bucket(source, bits);
    while (*at != nullptr && !has_key(**at, source, bits)) {
      at = &links(**at).next_key;
    }
    return at;
  }

  /// As the youngest of its key.
  void add(Node& node) {
    // Entries of one key are often added one after another: the last such bucket is tried first.
    Node* first = *last_bucket_;
    if (first == nullptr || !has_key(*first, node.source, node.bits)) {
      Node** const bucket = &this->bucket(node.source, node.bits);
      for (first = *bucket; first != nullptr && !has_key(*first, node.source, node.bits);) {
        first = links(*first).next_key;
      }
      if (first == nullptr) {
        links(node) = {*bucket, nullptr, &node};
        *bucket = &node;
        if (--room_ < 0) [[unlikely]] {
          grow();
        }
        return;
      }
      last_bucket_ = bucket;
    }
    Node* last = links(*first).prev;
    links(node).next = nullptr;
    links(node).prev = last;
    links(*last).next = &node;
    links(*first).prev = &node;
  }

  /// @param at of find(), with an entry: it is taken out.
  void remove_first(Node** at) { remove_before(at, next(**at)); }
  /// @param at the same. @param first of those of its key that stay, or null: none does.
  void remove_before(Node** at, Node* first) {
    const KeyLinks<Node>& gone = links(**at);
    if (first == nullptr) {
      *at = gone.next_key;
      ++room_;
      return;
    }
    links(*first).next_key = gone.next_key;
    links(*first).prev = gone.prev;
    *at = first;
  }
  /// The next younger one of the same key; null: there is none.
  [[nodiscard]] static Node* next(Node& node) { return links(node).next; }

  /// @param node that is in this table.
  void remove(Node& node) {
    const KeyLinks<Node> gone = links(node);
    const bool is_first = links(*gone.prev).next == nullptr;
    if (is_first) {
      remove_first(find(node.source, node.bits));
      return;
    }
    links(*gone.prev).next = gone.next;
    Node& after = gone.next != nullptr ? *gone.next : **find(node.source, node.bits);
    links(after).prev = gone.prev;
  }

  /// Cold: `visit(Node&)` for all, by key the oldest first; it may not change the table.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (uint64_t i = 0; i < buckets(); ++i) {
      for (Node* first = buckets_[i]; first != nullptr; first = links(*first).next_key) {
        for (Node* node = first; node != nullptr; node = links(*node).next) {
          visit(*node);
        }
      }
    }
  }

  /// For so many keys add() does not grow the table.
  [[nodiscard]] uint64_t capacity() const { return buckets() / kBucketsPerKey; }
  [[nodiscard]] uint64_t grow_failures() const { return grow_failures_; }

  /// Cold: keys in the longest chain, to see how well the hash spreads.
  [[nodiscard]] uint64_t longest_chain() const {
    uint64_t longest = 0;
    for (uint64_t i = 0; i < buckets(); ++i) {
      uint64_t length = 0;
      for (Node* first = buckets_[i]; first != nullptr; first = links(*first).next_key) {
        ++length;
      }
      longest = std::max(longest, length);
    }
    return longest;
  }

 private:
  static constexpr uint64_t kBucketsPerKey = 4;  // so that most chains have one key

  static KeyLinks<Node>& links(Node& node) { return node.*kLinks; }
  [[nodiscard]] uint64_t buckets() const { return buckets_ ? uint64_t{1} << (64 - shift_) : 0; }
  [[nodiscard]] Node*& bucket(uint32_t source, uint64_t bits) const {
    return buckets_[key_hash(seed_, kBySource ? source : kAnySource, bits & keep_) >> shift_];
  }
  [[nodiscard]] bool has_key(const Node& node, uint32_t source, uint64_t bits) const {
    return ((node.bits ^ bits) & keep_) == 0 && (!kBySource || node.source == source);
  }
  [[gnu::noinline, gnu::cold]] void grow() {
    if (reserve(2 * capacity()) != 0) {
      ++grow_failures_;
      room_ += static_cast<int64_t>(capacity());  // before it tries again
    }
  }

  void move_to(std::unique_ptr<Node*[]> buckets, uint64_t count) {
    const uint64_t old_count = this->buckets();
    const std::unique_ptr<Node*[]> old = std::exchange(buckets_, std::move(buckets));
    room_ += static_cast<int64_t>((count - old_count) / kBucketsPerKey);
    shift_ = 64 - std::countr_zero(count);
    last_bucket_ = &buckets_[0];
    for (uint64_t i = 0; i < old_count; ++i) {
      for (Node* first = old[i]; first != nullptr;) {
        Node* next = links(*first).next_key;
        Node*& here = bucket(first->source, first->bits);
        links(*first).next_key = here;
        here = first;
        first = next;
      }
    }
  }

  uint64_t ignored_ = 0;
  uint64_t keep_ = ~uint64_t{0};  // ~ignored_, kept since both are read on the hot path
  Node** last_bucket_ = nullptr;  // of the key that add() extended last, or any bucket
  std::unique_ptr<Node*[]> buckets_;
  int shift_ = 0;  // of the hash: as many bits are left as buckets have
  HashSeed seed_;
  int64_t room_ = 0;  // keys that may come before the table grows
  uint64_t grow_failures_ = 0;
};

}  // namespace rio::tag
