/// @file
/// Keeps strangers out: a key that all members share, and keys derived from it. libsodium's
/// XChaCha20-Poly1305 and ChaCha20-Poly1305 (RFC 8439), BLAKE2b.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace rio::wire::udp {

inline constexpr size_t kKeyBytes = 32;
inline constexpr size_t kTagBytes = 16;
using KeyBytes = std::array<uint8_t, kKeyBytes>;
/// Random bytes: names of members, and challenges of connections.
using Random = std::array<uint8_t, 16>;

/// Draw random bytes. Any thread. @return 0, or -EIO: the system has none.
[[nodiscard]] int draw(std::span<uint8_t> out);

/// The key of a fabric, or none. Constant; any thread.
class Key {
 public:
  Key() = default;
  /// Make a key. @param text of the user; empty: no key. @return 0; -EINVAL: too short, see
  /// `error`.
  [[nodiscard]] static int from_text(const std::string& text, Key* out, std::string* error);

  [[nodiscard]] bool set() const { return set_; }
  /// Bytes that sealing adds.
  [[nodiscard]] size_t tag_bytes() const { return set_ ? kTagBytes : 0; }
  /// The key of one direction of a connection. @param from, to the two sides' challenges for it.
  [[nodiscard]] KeyBytes derive(const Random& from, const Random& to) const;

  /// Seal a greeting, before there is a connection: everything behind the first `clear` bytes, plus
  /// kTagBytes. @param bytes has room for them. @param nonce_at offset of 24 random bytes within
  /// the clear ones. Without a key it does nothing. @return the new length.
  [[nodiscard]] size_t seal(std::span<uint8_t> bytes, size_t used, size_t clear,
                            size_t nonce_at) const;
  /// Open a sealed greeting. @return length without the tag; 0: it does not open.
  [[nodiscard]] size_t open(std::span<uint8_t> bytes, size_t clear, size_t nonce_at) const;

 private:
  KeyBytes bytes_{};
  bool set_ = false;
};

/// Seal everything behind `clear` bytes in place. @param number never the same twice with a key.
/// @param bytes with kTagBytes of room at the end. @return the new length.
[[nodiscard]] size_t seal(const KeyBytes& key, uint64_t number, std::span<uint8_t> bytes,
                          size_t used, size_t clear);
/// Open sealed bytes. @return length without the tag; 0: they do not open.
[[nodiscard]] size_t open(const KeyBytes& key, uint64_t number, std::span<uint8_t> bytes,
                          size_t clear);

/// Remembers which datagrams of a connection have arrived, so that none is accepted twice (RFC 4303
/// 3.4.3). One thread.
class Replay {
 public:
  /// Note a datagram. @return false: it arrived before, or is too old to tell.
  [[nodiscard]] bool take(uint64_t number);

 private:
  static constexpr uint64_t kBits = 1024;
  std::array<uint64_t, kBits / 64> seen_{};
  uint64_t last_ = 0;
};

}  // namespace rio::wire::udp
