/// @file
/// The steps of a selftest that exchange messages between two open ends. Each function throws the
/// fault that it finds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pmd/selftest/exchange.hpp"

namespace rio::selftest {

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
void try_messages(Exchange& exchange, std::span<const MessageTrial> trials);
/// Every bit of the information; every information unless `quick`.
void try_doorbells(Exchange& exchange, bool quick);
/// Transmit rings full of messages. The rings have End::kBurstEntries entries, all free.
void try_bursts(Exchange& exchange, uint32_t rounds);
/// Entries of `stride` bytes, twice `stride` and so on through one dedicated queue.
void try_dedicated(Exchange& exchange, uint32_t index, uint32_t stride);
/// NWRITE, NWRITE_R, SWRITE, NREAD: lengths and alignments, through a window of the other end.
void try_memory(Exchange& exchange, bool quick);
void try_atomics(Exchange& exchange);

/// Everything that one end can send to the other; throws nothing. @param wrong set unless 0 is
/// returned. @return 0, -EIO (wrong bytes or status), -ETIMEDOUT (nothing moved), -ENODEV (gone).
[[nodiscard]] int try_all(const End& from, const End& to, std::string* wrong);

}  // namespace rio::selftest
