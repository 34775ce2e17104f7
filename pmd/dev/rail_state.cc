#include "pmd/dev/rail_state.hpp"

#include <cerrno>

namespace rio::pmd {

DmaRequest rail_request(uint32_t dest_id, uint64_t iova, uint64_t cookie) {
  DmaRequest request{};
  request.rio_addr = kRailStatusAddress;
  request.iova = iova;
  request.cookie = cookie;
  request.dest_id = dest_id;
  request.length_bytes = sizeof(regs::RailStatus);
  request.op = regs::DmaOp::kNread;
  return request;
}

int read_rail_state(const regs::RailStatus& bytes, RailState* out) {
  using Busy = regs::rail_status::Busy;
  if (bytes.sequence != bytes.sequence_end) {
    return -EAGAIN;
  }
  if (bytes.magic != regs::kMagic) {
    return -EPROTO;
  }
  *out = {.sequence = bytes.sequence,
          .reading = Busy::reading.get(bytes.busy) != 0,
          .receiving = Busy::receiving.get(bytes.busy) != 0,
          .tx_bytes = bytes.tx_bytes,
          .rx_bytes = bytes.rx_bytes,
          .link = link_state(bytes.link),
          .time_ticks = bytes.time};
  return 0;
}

int read_rail_answer(const EntryDone& done, const regs::RailStatus& bytes, RailState* out) {
  switch (done.status) {
    case Status::kOk:
      return done.bytes == sizeof bytes ? read_rail_state(bytes, out) : -EIO;
    case Status::kErrorResponse:
      return -ENOTSUP;
    case Status::kResponseTimeout:
      return -ETIMEDOUT;
    case Status::kLinkDown:
      return -ENETDOWN;
    default:
      return -EIO;
  }
}

}  // namespace rio::pmd
