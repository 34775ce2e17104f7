#include "apps/testpmd/barrier_meeting.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <vector>

#include "apps/testpmd/text.hpp"
#include "apps/testpmd/watch.hpp"

namespace rio::testpmd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{60};
constexpr std::chrono::milliseconds kAgain{20};  // after which a refused doorbell is sent again

/// A rank of another process, as a member sees it.
struct Partner {
  uint32_t dest_id;
  bool told = false;  // it has our doorbell
  bool here = false;  // we have its doorbell
  bool in_flight = false;
  Clock::time_point next{};
};

/// A member of this process.
class Attendee {
 public:
  Attendee(pmd::QueuePair& pair, std::span<const uint32_t> others, uint16_t info)
      : pair_(pair), info_(info) {
    for (const uint32_t dest_id : others) {
      partners_.push_back({.dest_id = dest_id});
    }
  }

  void poll() {
    const Clock::time_point now = Clock::now();
    for (size_t i = 0; i < partners_.size(); ++i) {
      if (!partners_[i].told && !partners_[i].in_flight && partners_[i].next <= now) {
        ring(i);
      }
    }
    pmd::TxDone done;
    while (pair_.tx().reap(&done, 1) != 0) {
      Partner& partner = partners_[done.cookie];
      partner.in_flight = false;
      partner.told = done.status == pmd::Status::kOk;
      partner.next = now + kAgain;
    }
    pmd::DoorbellEvent event;
    while (pair_.doorbells().burst(&event, 1) != 0) {
      for (Partner& partner : partners_) {
        partner.here = partner.here || (partner.dest_id == event.source && event.info == info_);
      }
    }
  }
  /// The first partner that has not come. @return null: all have.
  [[nodiscard]] const Partner* missing() const {
    const auto found = std::ranges::find_if(
        partners_, [](const Partner& partner) { return !partner.told || !partner.here; });
    return found == partners_.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool is_quiet() const {
    return std::ranges::none_of(partners_, &Partner::in_flight);
  }

 private:
  void ring(size_t i) {
    const pmd::TxMessage message{.info = info_,
                                 .cookie = i,
                                 .dest_id = partners_[i].dest_id,
                                 .length_bytes = 2,
                                 .mbox = 0,
                                 .flags = pmd::TxFlags::kDoorbell};
    partners_[i].in_flight = pair_.tx().burst(&message, 1) == 1;
  }

  pmd::QueuePair& pair_;
  const uint16_t info_;
  std::vector<Partner> partners_;
};

}  // namespace

int meet(std::span<pmd::QueuePair* const> ours, std::span<const uint32_t> dest_ids, uint32_t number,
         std::string* error) {
  std::vector<uint32_t> others;
  std::ranges::copy_if(dest_ids, std::back_inserter(others), [ours](uint32_t dest_id) {
    return std::ranges::none_of(
        ours, [dest_id](pmd::QueuePair* pair) { return pair->dest_id() == dest_id; });
  });
  // Bit 15 is 0, so that the doorbell is no notification.
  const auto info = static_cast<uint16_t>(number & 0x7FFF);
  std::vector<Attendee> attendees;
  for (pmd::QueuePair* const pair : ours) {
    attendees.emplace_back(*pair, others, info);
  }
  const Clock::time_point end = Clock::now() + kLimit;
  const Partner* missing = nullptr;
  bool quiet = false;
  do {
    missing = nullptr;
    quiet = true;
    for (Attendee& attendee : attendees) {
      attendee.poll();
      missing = missing == nullptr ? attendee.missing() : missing;
      quiet = quiet && attendee.is_quiet();
    }
    if (missing != nullptr && (interrupted() || Clock::now() > end)) {
      return fail(error,
                  "--peers: destID 0x%x has not come; start rio-testpmd with the same --peers at "
                  "each card",
                  missing->dest_id);
    }
  } while (missing != nullptr || !quiet);
  return 0;
}

}  // namespace rio::testpmd
