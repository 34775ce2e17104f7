/// @file
/// What keeps strangers out: a key that all members have, and what is derived from it. libsodium's
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
/// Names of members, and what is drawn for each connection.
using Random = std::array<uint8_t, 16>;

/// Draw bytes that cannot be guessed. Any thread. @return 0, or -EIO: the system has none.
[[nodiscard]] int draw(std::span<uint8_t> out);

/// The key of a fabric, or none. Constant; any thread.
class Key {
 public:
  Key() = default;
  /// @param text of the user; empty: none. @return 0; -EINVAL: too short, `error` says so.
  [[nodiscard]] static int from_text(const std::string& text, Key* out, std::string* error);

  [[nodiscard]] bool set() const { return set_; }
  /// Bytes that sealing adds.
  [[nodiscard]] size_t tag_bytes() const { return set_ ? kTagBytes : 0; }
  /// The key of one direction of a connection. @param from, to what both sides drew for it.
  [[nodiscard]] KeyBytes derive(const Random& from, const Random& to) const;

  /// Seal a greeting, before there is a connection: all behind the first `clear` bytes, with
  /// kTagBytes more. @param bytes has room for them. @param nonce_at 24 random bytes within the
  /// clear ones. Without a key nothing is done. @return bytes now.
  [[nodiscard]] size_t seal(std::span<uint8_t> bytes, size_t used, size_t clear,
                            size_t nonce_at) const;
  /// The other way round. @return bytes without the tag; 0: it does not open.
  [[nodiscard]] size_t open(std::span<uint8_t> bytes, size_t clear, size_t nonce_at) const;

 private:
  KeyBytes bytes_{};
  bool set_ = false;
};

/// Seal all behind `clear` bytes in place. @param number never twice with a key. @param bytes with
/// kTagBytes of room at its end. @return bytes now.
[[nodiscard]] size_t seal(const KeyBytes& key, uint64_t number, std::span<uint8_t> bytes,
                          size_t used, size_t clear);
/// @return bytes without the tag; 0: it does not open.
[[nodiscard]] size_t open(const KeyBytes& key, uint64_t number, std::span<uint8_t> bytes,
                          size_t clear);

/// Which of a connection's datagrams have come: none is taken twice (RFC 4303 3.4.3). One thread.
class Replay {
 public:
  /// @return false: it was here before, or is too old to tell.
  [[nodiscard]] bool take(uint64_t number);

 private:
  static constexpr uint64_t kBits = 1024;
  std::array<uint64_t, kBits / 64> seen_{};
  uint64_t last_ = 0;
};

}  // namespace rio::wire::udp
