/// @file
/// Maintenance accesses, as an enumeration needs them. A card makes them (card_access.hpp); tests
/// give devices that lie. Those of a run are tried again when an answer was lost, and bounded in
/// all; the options of a run.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>

namespace rio::enumerate {

/// The device that an access is for: the `hops`-th switch on the way to a destID, or the endpoint.
struct Address {
  uint32_t dest_id = 0;
  uint32_t hops = 0;         ///< 0 to 255
  bool is_own_card = false;  ///< the card that makes the accesses; dest_id and hops say nothing
};
inline constexpr Address kOwnCard{0, 0, true};

/// One thread. Each function returns in bounded time: 0, -ETIMEDOUT (no answer; a write may have
/// been carried out all the same), or another -errno (refused; the card or its link is gone).
/// `offset` is a multiple of 4 below 2^24; outputs are set on success only.
class MaintAccess {
 public:
  virtual ~MaintAccess() = default;
  [[nodiscard]] virtual int read(const Address& at, uint32_t offset, uint32_t* value) = 0;
  [[nodiscard]] virtual int write(const Address& at, uint32_t offset, uint32_t value) = 0;
};

/// How much an enumeration may do.
struct Limits {
  uint32_t tries = 3;              ///< of one access, at least 1
  uint32_t accesses = 1'000'000;   ///< in all
  std::chrono::seconds time{120};  ///< in all
  /// Null, or not 0 once the user wants it to end; a signal handler may write it.
  const volatile std::sig_atomic_t* stop = nullptr;
};

/// One run, which enumerates a fabric or only looks at it.
struct EnumerateOptions {
  uint32_t host_id = 0;   ///< destID of the card itself, and whose lock it is
  bool large = false;     ///< destIDs of 16 bits
  bool steal = false;     ///< break other hosts' locks; not for Looker
  uint32_t nodes = 4096;  ///< devices to find at most, and more is a limit reached
  Limits limits;
};

/// Whether an error says something about a device, and not about the card itself or the run.
/// -ENOSPC: no destID is left for it.
[[nodiscard]] bool is_of_device(int rc);

/// One thread. As MaintAccess, and besides -ETIME: the limit was reached, nothing was sent. The own
/// card is asked once.
class PatientAccess {
 public:
  /// The clock starts. @param access outlives the object.
  PatientAccess(MaintAccess& access, const Limits& limits);

  [[nodiscard]] int read(const Address& at, uint32_t offset, uint32_t* value);
  /// For registers where writing the same again does no harm.
  [[nodiscard]] int write(const Address& at, uint32_t offset, uint32_t value);
  /// Write once, for registers that must not be written twice. After -ETIMEDOUT it is unknown
  /// whether it was carried out.
  [[nodiscard]] int write_once(const Address& at, uint32_t offset, uint32_t value);

  /// Allow so much more, to tidy up, even if the user wants it to end.
  void extend(uint32_t accesses, std::chrono::seconds time);

 private:
  [[nodiscard]] bool exhausted() const;
  template <class Try>
  [[nodiscard]] int repeat(uint32_t tries, Try&& once);

  MaintAccess& access_;
  uint32_t tries_;
  uint32_t allowed_;
  uint32_t done_ = 0;
  std::chrono::steady_clock::time_point end_;
  const volatile std::sig_atomic_t* stop_;
};

}  // namespace rio::enumerate
