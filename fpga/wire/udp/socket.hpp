/// @file
/// A socket that sends and receives many datagrams at once, as far as the kernel can (UDP_SEGMENT,
/// UDP_GRO).
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "base/fd.hpp"
#include "base/fork.hpp"
#include "fpga/wire/udp/address.hpp"

namespace rio::wire::udp {

/// Receives the socket's events.
class Listener {
 public:
  virtual ~Listener() = default;
  /// A datagram has arrived. @param bytes foreign; may be written to until this returns.
  virtual void on_datagram(const Address& from, std::span<uint8_t> bytes) = 0;
  /// The kernel reports that no process listens there.
  virtual void on_refused(const Address& to) = 0;
  /// The kernel, or a router, reports that the path takes only packets of `mtu` bytes.
  virtual void on_narrow(const Address& to, uint32_t mtu) = 0;
};

/// Faults that datagrams suffer on purpose before they leave.
struct PathFaults {
  uint64_t seed = 0;
  double rate = 0.0;  ///< probability of each to be lost, doubled, or delayed behind others
};

/// Non-blocking. Used by one thread at a time. In a forked child it does nothing: datagrams are
/// dropped, none arrive, and the port stays the parent's alone.
class Socket {
 public:
  /// Open a socket. @param at port 0: any. @return -errno (-EADDRINUSE, -EADDRNOTAVAIL).
  [[nodiscard]] static int open(const Address& at, std::unique_ptr<Socket>* out);

  /// The address that it is bound to.
  [[nodiscard]] const Address& address() const { return address_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  /// Receive some datagrams. @return how many; fewer than kTakenMax: there are no more.
  uint32_t receive(Listener* listener);
  static constexpr uint32_t kTakenMax = 8;

  /// Sleep until a datagram arrives. @param ms at most.
  void wait_ms(int ms) const;

  /// Get room for the next datagram to an address; datagrams to another address are sent first.
  /// @param bytes its longest length.
  [[nodiscard]] std::span<uint8_t> begin(const Address& to, size_t bytes);
  /// Finish the datagram in that room.
  void end(size_t bytes);
  /// Send all finished datagrams.
  void flush();
  void set_faults(const PathFaults& faults);

 private:
  Socket() = default;
  static void release(void* ctx) { base::release_in_child(static_cast<Socket*>(ctx)->fd()); }
  void take_errors(Listener* listener);
  [[nodiscard]] bool send(const Address& to, std::span<const uint8_t> bytes,
                          uint16_t segment_bytes);
  [[nodiscard]] bool spoil(size_t bytes);
  void send_late();

  base::Fd fd_;
  const base::InChild in_child_{&release, this};
  Address address_;
  bool segments_ = true;  // the kernel cuts one buffer into datagrams
  bool errors_ = false;   // the kernel may have an error to report

  Address to_;
  std::vector<uint8_t> out_;
  size_t used_ = 0;
  uint32_t count_ = 0;  // datagrams in out_
  size_t segment_ = 0;  // length of each but the last
  bool last_ = false;   // a shorter one is there, which must be the last
  std::vector<uint8_t> in_;

  struct Late {
    Address to;
    std::vector<uint8_t> bytes;
  };
  std::mt19937_64 random_;
  uint64_t fault_below_ = 0;  // of 2^32; 0: no faults
  std::vector<Late> late_;
};

}  // namespace rio::wire::udp
