/// @file
/// The steps of a selftest that exchange messages between two open ends. Each function throws the
/// fault that it finds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pmd/selftest/exchange.hpp"

namespace rio::selftest {

/// Counts what was tried. One thread.
struct Tally {
  /// Told after each thing; may be empty. @param total 0 where it is not known.
  std::function<void(uint64_t done, uint64_t total)> tell;
  uint64_t done = 0;
  uint64_t bytes = 0;
  void add(uint64_t things, uint64_t more_bytes, uint64_t total) {
    done += things;
    bytes += more_bytes;
    if (tell) {
      tell(done, total);
    }
  }
};

/// Lengths around those at which something changes.
[[nodiscard]] std::vector<uint32_t> some_lengths();
/// Messages of some_lengths(), or of every length.
[[nodiscard]] std::vector<MessageTrial> length_trials(bool quick);
/// Messages inside of the descriptor: every length, over some or all mailboxes. Empty where the
/// card takes none.
[[nodiscard]] std::vector<MessageTrial> inline_trials(const pmd::Caps& caps, bool quick);
/// Every segment size and number of segments.
[[nodiscard]] std::vector<MessageTrial> segment_trials();

/// All trials through the shared queue, one after the other.
void try_messages(Exchange& exchange, std::span<const MessageTrial> trials, Tally* tally);
/// Every bit of the information; every information unless `quick`.
void try_doorbells(Exchange& exchange, bool quick, Tally* tally);
/// Transmit rings full of messages. The rings have End::kBurstEntries entries, all free.
void try_bursts(Exchange& exchange, uint32_t rounds, Tally* tally);
/// Entries of `stride` bytes, twice `stride` and so on through one dedicated queue.
void try_dedicated(Exchange& exchange, uint32_t index, uint32_t stride, Tally* tally);
/// NWRITE, NWRITE_R, SWRITE, NREAD: lengths and alignments, through a window of the other end.
void try_memory(Exchange& exchange, bool quick, Tally* tally);
void try_atomics(Exchange& exchange, Tally* tally);

/// Everything that one end can send to the other; throws nothing. @param wrong set unless 0 is
/// returned. @return 0, -EIO (wrong bytes or status), -ETIMEDOUT (nothing moved), -ENODEV (gone).
[[nodiscard]] int try_all(const End& from, const End& to, std::string* wrong);

}  // namespace rio::selftest
