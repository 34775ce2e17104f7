#include "pmd/dev/names.hpp"

namespace rio::pmd {

const char* name(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kRetryExpired:
      return "retry expired";
    case Status::kResponseTimeout:
      return "response time-out";
    case Status::kErrorResponse:
      return "error response";
    case Status::kBadDescriptor:
      return "bad descriptor";
    case Status::kHostReadFailed:
      return "host read failed";
    case Status::kFlushed:
      return "flushed";
    case Status::kLinkDown:
      return "link down";
    case Status::kReceiveTimeout:
      return "receive time-out";
    case Status::kSizeMismatch:
      return "size mismatch";
    case Status::kFormat:
      return "format";
  }
  return "unknown status";
}

const char* name(regs::RingState state) {
  switch (state) {
    case regs::RingState::kStopped:
      return "stopped";
    case regs::RingState::kRunning:
      return "running";
    case regs::RingState::kStopping:
      return "stopping";
    case regs::RingState::kError:
      return "error";
  }
  return "unknown state";
}

const char* name(regs::RingError error) {
  switch (error) {
    case regs::RingError::kNone:
      return "none";
    case regs::RingError::kConfig:
      return "config";
    case regs::RingError::kTail:
      return "tail";
    case regs::RingError::kHostRead:
      return "host read";
    case regs::RingError::kMismatch:
      return "mismatch";
  }
  return "unknown error";
}

const char* name(Reject reject) {
  switch (reject) {
    case Reject::kNone:
      return "none";
    case Reject::kLength:
      return "length";
    case Reject::kAlignment:
      return "alignment";
    case Reject::kMailbox:
      return "mailbox";
    case Reject::kOperation:
      return "operation";
  }
  return "unknown reject";
}

const char* name(regs::EventType type) {
  switch (type) {
    case regs::EventType::kPortWrite:
      return "port-write";
    case regs::EventType::kLink:
      return "link";
    case regs::EventType::kRingError:
      return "ring error";
    case regs::EventType::kOverflow:
      return "overflow";
    case regs::EventType::kWindowViolation:
      return "window violation";
    case regs::EventType::kPartner:
      return "partner";
  }
  return "unknown event";
}

const char* ring_name(uint32_t ring) {
  static constexpr const char* kNames[regs::kRingsPerQp] = {
      "tx",         "shared",     "doorbell",   "dma",        "maint",      "barrier",
      "event",      "reserved7",  "dedicated0", "dedicated1", "dedicated2", "dedicated3",
      "dedicated4", "dedicated5", "dedicated6", "dedicated7"};
  return ring < regs::kRingsPerQp ? kNames[ring] : "unknown ring";
}

const char* remedy(regs::RingError error) {
  switch (error) {
    case regs::RingError::kNone:
      return "none is needed";
    case regs::RingError::kConfig:
      return "choose a ring size and vector within the card's capabilities";
    case regs::RingError::kTail:
      return "reset the card: its tail and the driver's differ";
    case regs::RingError::kHostRead:
      return "check that the IOMMU maps the ring's memory";
    case regs::RingError::kMismatch:
      return "post entries that match the sender's messages in number and size; then open the "
             "queue again";
  }
  return "update the driver: it does not know this error";
}

}  // namespace rio::pmd
