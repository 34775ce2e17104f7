#include "pmd/dev/names.hpp"

#include <cstddef>

namespace rio::pmd {
namespace {

/// The text of a code. @param texts those of the codes from `first` on.
template <auto first, class Code, size_t n>
const char* text_of(const char* const (&texts)[n], Code code, const char* unknown) {
  const auto at = static_cast<size_t>(code) - static_cast<size_t>(first);
  return at < n ? texts[at] : unknown;
}

template <class Code, size_t n>
constexpr bool ends_with(const char* const (&/*texts*/)[n], Code first, Code last) {
  return static_cast<size_t>(last) - static_cast<size_t>(first) + 1 == n;
}

constexpr const char* kStatus[] = {"ok",
                                   "retry expired",
                                   "response time-out",
                                   "error response",
                                   "bad descriptor",
                                   "host read failed",
                                   "flushed",
                                   "link down",
                                   "receive time-out",
                                   "size mismatch",
                                   "format",
                                   "peer failed"};
static_assert(ends_with(kStatus, Status::kOk, Status::kPeerFailed));
constexpr const char* kRingState[] = {"stopped", "running", "stopping", "error"};
static_assert(ends_with(kRingState, regs::RingState::kStopped, regs::RingState::kError));
constexpr const char* kRingError[] = {"none", "config", "tail", "host read", "mismatch"};
static_assert(ends_with(kRingError, regs::RingError::kNone, regs::RingError::kMismatch));
constexpr const char* kReject[] = {"none", "length", "alignment", "mailbox", "operation"};
static_assert(ends_with(kReject, Reject::kNone, Reject::kOperation));
constexpr const char* kEvent[] = {"port-write",       "link",    "ring error",     "overflow",
                                  "window violation", "partner", "barrier foreign"};
static_assert(ends_with(kEvent, regs::EventType::kPortWrite, regs::EventType::kBarrierForeign));
constexpr const char* kRing[regs::kRingsPerQp] = {
    "tx",         "shared",     "doorbell",   "dma",        "maint",      "barrier",
    "event",      "reserved7",  "dedicated0", "dedicated1", "dedicated2", "dedicated3",
    "dedicated4", "dedicated5", "dedicated6", "dedicated7"};
constexpr const char* kRemedy[] = {
    "none is needed", "choose a ring size and vector within the card's capabilities",
    "reset the card: its tail and the driver's differ",
    "check that the IOMMU maps the ring's memory",
    "post entries that match the sender's messages in number and size; then open the queue again"};
static_assert(ends_with(kRemedy, regs::RingError::kNone, regs::RingError::kMismatch));

}  // namespace

const char* name(Status status) {
  return text_of<Status::kOk>(kStatus, status, "unknown status");
}
const char* name(regs::RingState state) {
  return text_of<regs::RingState::kStopped>(kRingState, state, "unknown state");
}
const char* state_name(int state) {
  return state < 0 ? "unreadable" : name(static_cast<regs::RingState>(state));
}
const char* name(regs::RingError error) {
  return text_of<regs::RingError::kNone>(kRingError, error, "unknown error");
}
const char* name(Reject reject) {
  return text_of<Reject::kNone>(kReject, reject, "unknown reject");
}
const char* name(regs::EventType type) {
  return text_of<regs::EventType::kPortWrite>(kEvent, type, "unknown event");
}
const char* ring_name(uint32_t ring) {
  return text_of<0>(kRing, ring, "unknown ring");
}
const char* remedy(regs::RingError error) {
  return text_of<regs::RingError::kNone>(kRemedy, error,
                                         "update the driver: it does not know this error");
}

}  // namespace rio::pmd
