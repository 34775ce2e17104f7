#include "lib/barrier/schedule_check.hpp"

#include <algorithm>
#include <utility>

#include "base/formatted.hpp"

namespace rio::barrier {
namespace {

/// Whether exactly one bit of a round is for a peer. @param bits Schedule::send or await.
bool has_one(const Schedule& schedule, uint64_t bits, uint32_t round, uint32_t peer) {
  uint32_t count = 0;
  for (uint32_t way = 0; way < kWays; ++way) {
    const bool is_set = (bits & peer_bit(round, way)) != 0;
    count += is_set && schedule.peer(round, way) == peer ? 1 : 0;
  }
  return count == 1;
}

int fail_rule(const BrokenRule& broken, uint32_t rank, std::string* problem) {
  return base::fail(problem, "rank %u, round %u: %s", rank, broken.round, broken.rule);
}

/// Check the partners of one member. @return 0, -EINVAL.
int check_partners(std::span<const Schedule> schedules, uint32_t rank, std::string* problem) {
  const Schedule& own = schedules[rank];
  for (uint32_t round = 0; round < own.rounds; ++round) {
    for (uint32_t way = 0; way < kWays; ++way) {
      const uint32_t peer = own.peer(round, way);
      if (peer == kNoPeer) {
        continue;
      }
      const Schedule& other = schedules[peer];
      if (own.sends(round, way) && !has_one(other, other.await, round, rank)) {
        return base::fail(problem, "rank %u, round %u: sends to rank %u, which does not await it",
                          rank, round, peer);
      }
      if (own.awaits(round, way) && !has_one(other, other.send, round, rank)) {
        return base::fail(problem, "rank %u, round %u: awaits rank %u, which does not send", rank,
                          round, peer);
      }
    }
  }
  return 0;
}

uint32_t rounds_of(std::span<const Schedule> schedules) {
  uint32_t rounds = 0;
  for (const Schedule& schedule : schedules) {
    rounds = std::max(rounds, schedule.rounds);
  }
  return rounds;
}

/// Call `seen` with each peer that a rank awaits in a round.
template <class Seen>
void for_awaited(const Schedule& schedule, uint32_t round, Seen&& seen) {
  for (uint32_t way = 0; way < kWays; ++way) {
    if (schedule.awaits(round, way)) {
      seen(schedule.peer(round, way));
    }
  }
}

/// Whether the hub knows of every arrival at the beginning of round `end`.
bool knows_all(std::span<const Schedule> schedules, uint32_t hub, uint32_t end) {
  // Ranks whose knowledge at the beginning of a round reaches the hub by `end`; backwards.
  std::vector<uint8_t> reaches(schedules.size());
  reaches[hub] = 1;
  for (uint32_t round = end; round-- > 0;) {
    std::vector<uint8_t> earlier = reaches;
    for (size_t rank = 0; rank < schedules.size(); ++rank) {
      if (reaches[rank] != 0) {
        for_awaited(schedules[rank], round, [&](uint32_t peer) { earlier[peer] = 1; });
      }
    }
    reaches.swap(earlier);
  }
  return std::count(reaches.begin(), reaches.end(), 0) == 0;
}

/// The ranks that never learn what the hub knows at the beginning of round `begin`.
std::vector<uint32_t> unreached(std::span<const Schedule> schedules, uint32_t hub, uint32_t begin,
                                uint32_t rounds) {
  std::vector<uint8_t> knows(schedules.size());
  knows[hub] = 1;
  for (uint32_t round = begin; round < rounds; ++round) {
    std::vector<uint8_t> later = knows;
    for (size_t rank = 0; rank < schedules.size(); ++rank) {
      for_awaited(schedules[rank], round, [&](uint32_t peer) { later[rank] |= knows[peer]; });
    }
    knows.swap(later);
  }
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < schedules.size(); ++rank) {
    if (knows[rank] == 0) {
      missing.push_back(rank);
    }
  }
  return missing;
}

}  // namespace

int make_all(uint32_t ranks, const ScheduleOf& schedule_of, std::vector<Schedule>* out) {
  std::vector<Schedule> schedules(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (const int failure = schedule_of(rank, &schedules[rank]); failure != 0) {
      return failure;
    }
  }
  *out = std::move(schedules);
  return 0;
}

int check_consistent(std::span<const Schedule> schedules, std::string* problem) {
  const auto ranks = static_cast<uint32_t>(schedules.size());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (const BrokenRule broken = broken_rule(schedules[rank], ranks, rank);
        broken.rule != nullptr) {
      return fail_rule(broken, rank, problem);
    }
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (const int failure = check_partners(schedules, rank, problem); failure != 0) {
      return failure;
    }
  }
  return 0;
}

int check_spread(std::span<const Schedule> schedules, std::string* problem) {
  const size_t ranks = schedules.size();
  const size_t words = (ranks + 63) / 64;
  std::vector<uint64_t> known(ranks * words);
  for (size_t rank = 0; rank < ranks; ++rank) {
    known[rank * words + rank / 64] |= uint64_t{1} << (rank % 64);
  }
  const uint32_t rounds = rounds_of(schedules);
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<uint64_t> later = known;
    for (size_t rank = 0; rank < ranks; ++rank) {
      for_awaited(schedules[rank], round, [&](uint32_t peer) {
        for (size_t word = 0; word < words; ++word) {
          later[rank * words + word] |= known[peer * words + word];
        }
      });
    }
    known.swap(later);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (size_t other = 0; other < ranks; ++other) {
      if ((known[rank * words + other / 64] >> (other % 64) & 1) == 0) {
        return base::fail(problem, "rank %zu leaves without knowing that rank %zu arrived", rank,
                          other);
      }
    }
  }
  return 0;
}

int check_hub(std::span<const Schedule> schedules, uint32_t hub, std::string* problem) {
  const uint32_t rounds = rounds_of(schedules);
  if (!knows_all(schedules, hub, rounds)) {
    return base::fail(problem, "rank %u leaves without knowing of every arrival", hub);
  }
  // The hub only learns, so the first such round is found by bisection.
  uint32_t least = 0;
  uint32_t most = rounds;
  while (least < most) {
    const uint32_t middle = (least + most) / 2;
    if (knows_all(schedules, hub, middle)) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  if (const auto missing = unreached(schedules, hub, least, rounds); !missing.empty()) {
    return base::fail(problem,
                      "rank %u leaves without hearing from rank %u, which knows of every arrival "
                      "from round %u on",
                      missing.front(), hub, least);
  }
  return 0;
}

}  // namespace rio::barrier
