/// @file
/// Unexpected messages: a receive takes the earliest arrived one that it matches.
#pragma once

#include <cstdint>

#include "lib/tag/entry.hpp"

namespace rio::tag {

/// A list in order of arrival. Most of the time it is empty or a few messages long, so keeping one
/// costs no more than that list. A table by (source, bits), and one by bits alone for receives of
/// ANY source, come when a look-up would walk past kShortWalk messages: each is built from the
/// list, kept up with it from then on, and left off once the queue is empty. So a message enters
/// each table once at the most, and a look-up that ignores the same bits, mostly none, as the one
/// that the table was built for costs the same however many wait. Others walk in order of arrival.
/// One thread.
class MessageQueue {
 public:
  using List = Fifo<Message, &Message::by_age>;

  static constexpr uint32_t kShortWalk = 8;
  static constexpr int kIgnoredMax = 8;  // by a look-up that has a table: flags, not any tag

  /// @param messages that there will be room for at once. @return 0, -EINVAL, -ENOMEM.
  [[nodiscard]] int create(const HashSeed& seed, uint64_t messages);

  /// @param message that is nowhere, with bits and source; it is the queue's until it is taken.
  void append(Message& message);

  [[nodiscard]] bool empty() const { return count_ == 0; }

  /// The earliest arrived message that the pattern matches, which stays. Not const: it may build a
  /// table. @return null if there is none.
  [[nodiscard]] Message* find(const Pattern& pattern);
  /// Take out the message that find() would return.
  [[nodiscard]] Message* take(const Pattern& pattern);
  /// Keep that message among the claimed ones, where nothing finds it, until release().
  [[nodiscard]] Message* claim(const Pattern& pattern);
  /// @return 0, or -ENOENT if the message is not claimed: its handle is none, or was used before.
  [[nodiscard]] int release(Message& message);
  /// Take out a message that no receive will get, claimed or not. @return 0, or -ENOENT if it is
  /// not here.
  [[nodiscard]] int discard(Message& message);

  /// In order of arrival, and of claiming.
  [[nodiscard]] const List& waiting() const { return waiting_; }
  [[nodiscard]] const List& claimed() const { return claimed_; }

  [[nodiscard]] uint64_t count() const { return count_; }
  /// How many tables are kept up.
  [[nodiscard]] int tables() const { return by_key_used_ + by_bits_used_; }
  [[nodiscard]] uint64_t longest_chain() const { return by_key_.longest_chain(); }

 private:
  using ByKey = KeyTable<Message, &Message::by_key, true>;
  using ByBits = KeyTable<Message, &Message::by_bits, false>;

  /// @param used whether the table is kept up.
  template <class Table>
  Message* find_whole(const Pattern& pattern, Table* table, bool* used);
  Message* walk(const Pattern& pattern, uint64_t steps) const;
  void remove(Message& message);

  uint64_t count_ = 0;
  bool by_key_used_ = false;
  bool by_bits_used_ = false;
  List waiting_;
  ByKey by_key_;
  ByBits by_bits_;
  List claimed_;
};

}  // namespace rio::tag
