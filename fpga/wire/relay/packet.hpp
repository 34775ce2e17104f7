/// @file
/// The packets between a board's process and the host [S2].
///
/// A frame of the model is a transfer: an Announce, then its bytes in Data packets, none longer
/// than a pool's buffer. Packets lie in rings of frames and begin with the ring's `bytes`. Each
/// reader has to check them, since they are foreign bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "fpga/model/frame_ring.hpp"

namespace rio::wire::relay {

/// Requests and responses: a response never waits behind a request.
inline constexpr uint32_t kLanes = 2;
inline constexpr uint32_t kResponses = 1;

/// Kinds of packets: one bit each. [S2]
inline constexpr uint8_t kControlBit = 1;
inline constexpr uint8_t kDataBit = 2;
inline constexpr uint8_t kCreditBit = 4;  ///< our addition to [S2]

/// A buffer of a pool: the longest packet.
inline constexpr uint32_t kBufferBytes = 2048;
/// The longest transfer: a frame with a message of 4096 bytes.
inline constexpr uint32_t kTransferMax = model::frame_bytes(4096);
/// Bytes of frames that a process may have under way to another one, per lane.
inline constexpr uint32_t kWindowBytes = 16 * 1024;

/// Announces a transfer to the host.
struct Announce {
  uint32_t bytes = 0;
  uint8_t id = kControlBit;
  uint8_t zero[3] = {};
  uint32_t sequence = 0;  ///< of {source process, destination process, lane}, from 0; wraps
  uint32_t source_process = 0;
  uint32_t dest_process = 0;
  uint32_t source_port = 0;  ///< destID
  uint32_t dest_port = 0;
  uint32_t length = 0;  ///< of the frame, header included
};
static_assert(sizeof(Announce) == sizeof(model::Frame));

/// A part of a transfer; its bytes follow.
struct Data {
  uint32_t bytes = 0;
  uint8_t id = kDataBit;
  uint8_t zero[3] = {};
  uint32_t sequence = 0;
  uint32_t source_process = 0;
  uint32_t dest_process = 0;
  uint32_t fragment = 0;  ///< from 1; 0: there is only one
  uint32_t length = 0;    ///< bytes that follow
  uint32_t zero2 = 0;
};
static_assert(sizeof(Data) == sizeof(model::Frame) &&
              offsetof(Data, source_process) == offsetof(Announce, source_process) &&
              offsetof(Data, dest_process) == offsetof(Announce, dest_process));
inline constexpr uint32_t kDataMax = kBufferBytes - sizeof(Data);

/// Tells a process that another one has taken so many bytes of its frames. Sent by the host.
struct Credit {
  uint32_t bytes = 0;
  uint8_t id = kCreditBit;
  uint8_t lane = 0;
  uint8_t zero[2] = {};
  uint32_t process = 0;
  uint32_t taken = 0;  ///< bytes, 1 to kWindowBytes
  uint32_t zero2[4] = {};
};
static_assert(sizeof(Credit) == sizeof(model::Frame));

/// Gets a packet's header as `Kind`.
template <class Kind>
[[nodiscard]] Kind packet_as(const model::InFrame& in) {
  Kind out;
  static_assert(sizeof(out) == sizeof(model::Frame));
  std::memcpy(static_cast<void*>(&out), static_cast<const model::Frame*>(&in), sizeof out);
  return out;
}
[[nodiscard]] inline uint8_t id_of(const model::InFrame& in) {
  return static_cast<uint8_t>(in.type);
}

/// Put a transfer into a ring of at least 16 KiB, all of it visible at once. @param head its
/// `length` is that of `frame`. @return false: there is no room.
[[nodiscard]] bool put_transfer(model::FrameWriter& ring, Announce head,
                                std::span<const uint8_t> frame);
/// Put a Credit into a ring. @return false: there is no room.
[[nodiscard]] bool put_credit(model::FrameWriter& ring, uint32_t process, uint32_t lane,
                              uint32_t taken);

/// Makes frames of the packets of one {source process, destination process, lane}.
class Assembler {
 public:
  /// Check an Announce. @return null, or the rule that it breaks, as "announces ...". Then nothing
  /// is kept.
  [[nodiscard]] const char* announce(const Announce& head);
  /// Add a Data packet. @param payload its bytes, at least head.length. @param whole set if the
  /// frame is complete now.
  [[nodiscard]] const char* data(const Data& head, std::span<const uint8_t> payload, bool* whole);
  /// Whether a transfer was announced and is not complete.
  [[nodiscard]] bool open() const { return open_; }
  /// The last transfer's header.
  [[nodiscard]] const Announce& head() const { return head_; }
  [[nodiscard]] std::span<const uint8_t> frame() const { return frame_; }

 private:
  Announce head_;
  std::vector<uint8_t> frame_;
  uint32_t next_sequence_ = 0;
  uint32_t fragments_ = 0;  // that have arrived
  bool open_ = false;
};

}  // namespace rio::wire::relay
