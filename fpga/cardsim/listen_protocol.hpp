/// @file
/// What a program and rio-cardsim's listen: say to each other. The program's side is pmd/bus/emu.
///
/// A UNIX socket of packets (SOCK_SEQPACKET), on one machine: numbers are the machine's. The
/// program asks, the server answers each Request by one Reply, in order:
/// - kHello, once and first. The reply brings bar_bytes, vectors, and as descriptors the BAR (a
///   sealed memfd to be mapped) and an eventfd for each vector.
/// - kMap with one descriptor: the card may use bytes [offset, offset + len) of it at `iova`. It
///   must be a memfd sealed against shrinking, not of hugepages. All three are multiples of 4096.
/// - kUnmap: the window that begins at `iova` goes; after the reply the card uses it no more.
/// A side that breaks these rules is disconnected; a request that is merely refused has a -errno in
/// `status`. A closed socket means that the other side has gone, and with it the card or its user.
#pragma once

#include <cstdint>

namespace rio::cardsim::protocol {

inline constexpr uint32_t kMagic = 0x4D495352;  // "RSIM"
inline constexpr uint16_t kVersion = 1;
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint32_t kVectorsMax = 64;

enum class Verb : uint16_t { kHello = 1, kMap = 2, kUnmap = 3 };

struct Request {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Verb verb = Verb::kHello;
  uint64_t iova = 0;
  uint64_t offset = 0;
  uint64_t len_bytes = 0;
};
static_assert(sizeof(Request) == 32);

struct Reply {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t vectors = 0;    ///< of kHello
  int32_t status = 0;      ///< 0 or -errno
  uint32_t bar_bytes = 0;  ///< of kHello; a power of two
};
static_assert(sizeof(Reply) == 16);

}  // namespace rio::cardsim::protocol
