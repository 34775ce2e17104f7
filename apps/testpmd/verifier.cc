#include "apps/testpmd/verifier.hpp"

#include <algorithm>
#include <iterator>

#include "apps/testpmd/text.hpp"

namespace rio::testpmd {
namespace {

/// By Verdict.
constexpr const char* kVerdicts[] = {"good", "unknown tag", "wrong byte",
                                     "padding that is not zero"};
static_assert(std::size(kVerdicts) == static_cast<size_t>(Verdict::kPaddingBroken) + 1);

}  // namespace

void Verifier::reset(uint64_t seed, uint32_t flows, uint32_t len_bytes, bool verify) {
  seed_ = seed;
  len_bytes_ = len_bytes;
  verify_ = verify;
  senders_.assign(flows, {});
  receivers_.assign(flows, {});
}

void Verifier::failed(uint16_t flow, pmd::Status status) {
  const bool in_doubt = status == pmd::Status::kResponseTimeout || status == pmd::Status::kFlushed;
  ++(in_doubt ? senders_[flow].in_doubt : senders_[flow].refused);
}

void Verifier::note_error(uint16_t flow, const char* what, uint64_t sequence,
                          uint32_t offset_bytes) {
  Receiver& receiver = receivers_[flow];
  ++receiver.corrupted;
  if (receiver.first_error == nullptr) {
    receiver.first_error = what;
    receiver.first_sequence = sequence;
    receiver.first_offset_bytes = offset_bytes;
  }
}

bool Verifier::read(const uint8_t* bytes, uint32_t landed_bytes, uint16_t expected_flow,
                    uint64_t* stamp) {
  Tag tag;
  uint32_t offset_bytes = 0;
  *stamp = 0;
  if (landed_bytes != (len_bytes_ + 7) / 8 * 8) {
    note_error(expected_flow, "wrong length", 0, landed_bytes);
    return false;
  }
  const Verdict verdict = check_message(bytes, len_bytes_, landed_bytes, seed_,
                                        receivers_[expected_flow].seen.next(), &tag, &offset_bytes);
  if (verdict != Verdict::kGood) {
    note_error(expected_flow, kVerdicts[static_cast<size_t>(verdict)], tag.sequence, offset_bytes);
    return false;
  }
  const uint16_t flow = len_bytes_ < kTagBytes ? expected_flow : tag.flow;
  if (flow >= receivers_.size()) {
    note_error(expected_flow, "unknown flow", tag.sequence, 0);
    return false;
  }
  *stamp = tag.stamp;
  got_number(flow, tag.sequence, len_bytes_);
  return true;
}

void Verifier::got_number(uint16_t flow, uint64_t sequence, uint64_t bytes) {
  Receiver& receiver = receivers_[flow];
  receiver.bytes += bytes;
  const SequenceTracker::Seen seen = receiver.seen.accept(sequence);
  receiver.late += seen == SequenceTracker::Seen::kLate ? 1 : 0;
  receiver.duplicated += seen == SequenceTracker::Seen::kDuplicate ? 1 : 0;
}

VerifyTotals Verifier::totals() const {
  VerifyTotals totals;
  for (size_t flow = 0; flow < senders_.size(); ++flow) {
    const Sender& sender = senders_[flow];
    const Receiver& receiver = receivers_[flow];
    totals.bytes += receiver.bytes;
    totals.messages += receiver.seen.unique();
    totals.sent += sender.next;
    totals.duplicated += receiver.duplicated;
    totals.corrupted += receiver.corrupted;
    totals.late += receiver.late;
    totals.refused += sender.refused;
    totals.in_doubt += sender.in_doubt;
    const uint64_t missing = sender.next - std::min(sender.next, receiver.seen.unique());
    totals.lost += missing - std::min(missing, sender.refused + sender.in_doubt);
    totals.unrefused += sender.refused - std::min(missing, sender.refused);
    if (totals.first_error.empty() && receiver.first_error != nullptr) {
      totals.first_error =
          formatted("%s in message %lu of flow %zu at byte %u", receiver.first_error,
                    receiver.first_sequence, flow, receiver.first_offset_bytes);
    }
  }
  return totals;
}

}  // namespace rio::testpmd
