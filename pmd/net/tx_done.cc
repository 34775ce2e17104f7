// Completions of messages, and the doorbells by which ports find each other.
#include <utility>
#include <vector>

#include "pmd/net/tx.hpp"

namespace rio::pmd {
namespace {

constexpr uint64_t kDoorbellCookie = uint64_t{1} << 63;  // the receiver's destID in the lower bits

}  // namespace

uint32_t NetTx::reap() {
  TxDone done[kBurst];
  rte_mbuf* sent[kBurst];
  uint32_t back = 0;
  uint16_t n = 0;
  do {
    n = queue_->reap(done, kBurst);
    uint32_t count = 0;
    for (uint16_t i = 0; i < n; ++i) {
      if (done[i].cookie >= kDoorbellCookie) [[unlikely]] {
        bell_done(done[i]);
        continue;
      }
      const Record& record = records_[done[i].cookie];
      if (done[i].status != Status::kOk) [[unlikely]] {
        not_delivered(record, done[i].status);
      } else if (failures_seen_) [[unlikely]] {
        failures_[record.dest_id] = 0;
      }
      if (record.chain != nullptr) {
        sent[count++] = record.chain;
      }
      free_records_[free_count_++] = static_cast<uint32_t>(done[i].cookie);
    }
    if (count != 0) {
      rte_pktmbuf_free_bulk(sent, count);
    }
    back += count;
  } while (n == kBurst);
  return back;
}

/// A peer that fails again and again gets nothing until it joins.
[[gnu::noinline]] void NetTx::not_delivered(const Record& record, Status status) {
  counts_.refused.add(record.frames);
  if (status == Status::kFlushed || status == Status::kLinkDown ||
      status == Status::kHostReadFailed) {
    return;  // not the peer's fault
  }
  if (giving_up_ && status == Status::kRetryExpired) {
    failures_[record.dest_id] = 0;
    peers_.fall_asleep(record.dest_id);
    return;
  }
  failures_seen_ = true;
  uint8_t& failures = failures_[record.dest_id];
  if (++failures == kFailuresMax) {
    failures = 0;
    peers_.take_away(record.dest_id);
  }
}

void NetTx::bell_done(const TxDone& done) {
  --bells_out_;
  if (giving_up_ && done.status == Status::kRetryExpired) {
    peers_.fall_asleep(static_cast<uint32_t>(done.cookie - kDoorbellCookie));
  }
}

bool NetTx::is_stuck(uint32_t looks) {
  if (!turn_.take_soon()) {
    return false;
  }
  bool stuck = false;
  if (queue_ != nullptr) {
    const uint32_t oldest = queue_->oldest_index();
    looks_ = oldest == oldest_ && oldest != queue_->next_index() ? looks_ + 1 : 0;
    oldest_ = oldest;
    if (looks_ >= looks) {
      const uint32_t receiver = queue_->slot_dest_id(oldest);
      peers_.joined.for_each([&](uint32_t dest_id) {
        stuck = dest_id != receiver;
        return !stuck;
      });
    }
  }
  turn_.give();
  return stuck;
}

int NetTx::give_up() {
  looks_ = 0;
  if (queue_ == nullptr) {
    return 0;
  }
  const int rc = queue_->stop();
  giving_up_ = true;
  reap_all();
  giving_up_ = false;
  return rc != 0 ? rc : queue_->restart();
}

bool NetTx::ring_bell(uint32_t dest_id, uint16_t info) {
  const TxMessage message = {.info = info,
                             .cookie = kDoorbellCookie | dest_id,
                             .dest_id = dest_id,
                             .length_bytes = 0,
                             .mbox = 0,
                             .flags = TxFlags::kDoorbell};
  const bool rung = queue_->free_count() != 0 && queue_->stage(&message, 1) == 1;
  bells_out_ += rung ? 1 : 0;
  return rung;
}

/// Stages owed doorbells. Between begin_stage() and end_burst().
[[gnu::noinline]] void NetTx::stage_owed() {
  // acquire: the sets are read after this, and a thread that adds to one later sets the word again;
  // pairs with Peers::owe()
  peers_.owed.exchange(0, std::memory_order_acquire);
  // Doorbells to absent peers may take long to fail, and there may be many: leave room for frames.
  const uint32_t most = (1u << config_.ring_log2) / 4;
  const auto tell = [this, most](DestIdSet& set, uint16_t info) {
    bool all = true;
    set.for_each([&](uint32_t dest_id) {
      all = bells_out_ < most && ring_bell(dest_id, info);
      if (all) {
        set.remove(dest_id);
      }
      return all;
    });
    return all;
  };
  const auto more = static_cast<uint16_t>(more_ids_);
  const bool bells = tell(peers_.owed_join, kJoinDoorbell) &&
                     tell(peers_.owed_call, static_cast<uint16_t>(kCallDoorbell | more)) &&
                     tell(peers_.owed_answer, static_cast<uint16_t>(kAnswerDoorbell | more));
  const bool all = bells && tell_mates(most);
  if (!all) {
    peers_.owed.store(1, std::memory_order_relaxed);  // the rest at the next call
  }
}

/// Announces all mates to one peer after another. @param most limit of outstanding doorbells.
bool NetTx::tell_mates(uint32_t most) {
  bool all = true;
  peers_.owed_mates.for_each([this, most, &all](uint32_t dest_id) {
    const uint32_t own = peers_.own.load(std::memory_order_relaxed);
    all = peers_.mates.for_each([&](uint32_t port, uint32_t mate) {
      const uint16_t info = port == own ? mate_doorbell(port, mate) : uint16_t{0};
      return info == 0 || (bells_out_ < most && ring_bell(dest_id, info));
    });
    if (all) {
      peers_.owed_mates.remove(dest_id);
    }
    return all;
  });
  return all;
}

void NetTx::tell() {
  if (peers_.owed.load(std::memory_order_relaxed) == 0) {
    return;
  }
  const InTurn inside(turn_);
  if (inside && queue_ != nullptr) {
    reap();
    const uint32_t head_before = queue_->begin_stage();
    stage_owed();
    queue_->end_burst(head_before);
  }
}

void NetTx::tell_if_idle() {
  const uint32_t bursts = __atomic_load_n(&bursts_, __ATOMIC_RELAXED);
  if (std::exchange(bursts_seen_, bursts) == bursts) {
    tell();
  }
}

void NetTx::leave() {
  if (queue_ == nullptr) {
    return;
  }
  reap();
  const uint32_t head_before = queue_->begin_stage();
  // A peer that is not told finds out when it sends.
  peers_.joined.for_each([this](uint32_t dest_id) { return ring_bell(dest_id, kLeaveDoorbell); });
  queue_->end_burst(head_before);
}

uint32_t NetTx::clean_up() {
  const InTurn inside(turn_);
  return inside && queue_ != nullptr ? reap() : 0;
}

/// Fetches all completions of a stopped ring.
void NetTx::reap_all() {
  for (uint32_t before = 0; queue_->outstanding() != before;) {
    before = queue_->outstanding();
    reap();
  }
}

void NetTx::stop(bool settled) {
  if (queue_ == nullptr) {
    return;
  }
  reap_all();
  queue_ = nullptr;
  if (!settled) {
    return;
  }
  // A card that is gone has not returned all mbufs.
  const uint32_t count = 1u << config_.ring_log2;
  std::vector<bool> is_free(count);
  for (uint32_t i = 0; i < free_count_; ++i) {
    is_free[free_records_[i]] = true;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_free[i]) {
      counts_.refused.add(records_[i].frames);
      rte_pktmbuf_free(records_[i].chain);
      free_records_[free_count_++] = i;
    }
  }
}

}  // namespace rio::pmd
