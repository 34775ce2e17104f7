#include "fpga/wire/udp/key.hpp"

#include <sodium.h>

#include <cassert>
#include <cerrno>
#include <cstring>

namespace rio::wire::udp {
namespace {

constexpr size_t kTextMin = 16;
static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(kTagBytes == crypto_aead_xchacha20poly1305_ietf_ABYTES);
static_assert(kKeyBytes == crypto_aead_chacha20poly1305_ietf_KEYBYTES);
static_assert(kKeyBytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);

using Nonce = std::array<uint8_t, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

[[nodiscard]] Nonce nonce_of(uint64_t number) {
  Nonce nonce{};
  std::memcpy(nonce.data() + 4, &number, sizeof(number));  // little-endian: see DatagramHeader
  return nonce;
}

/// Seals what follows the first `clear` bytes. @return the new length.
template <auto kEncrypt>
[[nodiscard]] size_t seal_by(const KeyBytes& key, const uint8_t* nonce, std::span<uint8_t> bytes,
                             size_t used, size_t clear) {
  assert(bytes.size() >= used + kTagBytes);
  uint8_t* const at = bytes.data() + clear;
  unsigned long long sealed = 0;
  kEncrypt(at, &sealed, at, used - clear, bytes.data(), clear, nullptr, nonce, key.data());
  return clear + sealed;
}

/// Opens that again. @return the length without the tag; 0: it does not open.
template <auto kDecrypt>
[[nodiscard]] size_t open_by(const KeyBytes& key, const uint8_t* nonce, std::span<uint8_t> bytes,
                             size_t clear) {
  if (bytes.size() < clear + kTagBytes) {
    return 0;
  }
  uint8_t* const at = bytes.data() + clear;
  unsigned long long opened = 0;
  const int rc = kDecrypt(at, &opened, nullptr, at, bytes.size() - clear, bytes.data(), clear,
                          nonce, key.data());
  return rc == 0 ? clear + opened : 0;
}

}  // namespace

int draw(std::span<uint8_t> out) {
  if (sodium_init() < 0) {
    return -EIO;
  }
  randombytes_buf(out.data(), out.size());
  return 0;
}

int Key::from_text(const std::string& text, Key* out, std::string* error) {
  *out = {};
  if (text.empty()) {
    return 0;
  }
  if (text.size() < kTextMin) {
    *error = "the key has " + std::to_string(text.size()) + " characters; give at least " +
             std::to_string(kTextMin) + ", as openssl rand -hex 32 prints them";
    return -EINVAL;
  }
  if (sodium_init() < 0) {
    *error = "libsodium cannot be initialised";
    return -EIO;
  }
  static constexpr uint8_t kUse[] = "riopmd udp 1";
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, kKeyBytes);
  crypto_generichash_update(&state, kUse, sizeof(kUse));
  crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(text.data()), text.size());
  crypto_generichash_final(&state, out->bytes_.data(), kKeyBytes);
  out->set_ = true;
  return 0;
}

KeyBytes Key::derive(const Random& from, const Random& to) const {
  std::array<uint8_t, 2 * sizeof(Random)> both{};
  std::memcpy(both.data(), from.data(), from.size());
  std::memcpy(both.data() + from.size(), to.data(), to.size());
  KeyBytes out{};
  crypto_generichash(out.data(), out.size(), both.data(), both.size(), bytes_.data(),
                     bytes_.size());
  return out;
}

size_t Key::seal(std::span<uint8_t> bytes, size_t used, size_t clear, size_t nonce_at) const {
  return set_ ? seal_by<crypto_aead_xchacha20poly1305_ietf_encrypt>(bytes_, bytes.data() + nonce_at,
                                                                    bytes, used, clear)
              : used;
}

size_t Key::open(std::span<uint8_t> bytes, size_t clear, size_t nonce_at) const {
  return set_ ? open_by<crypto_aead_xchacha20poly1305_ietf_decrypt>(bytes_, bytes.data() + nonce_at,
                                                                    bytes, clear)
              : bytes.size();
}

size_t seal(const KeyBytes& key, uint64_t number, std::span<uint8_t> bytes, size_t used,
            size_t clear) {
  return seal_by<crypto_aead_chacha20poly1305_ietf_encrypt>(key, nonce_of(number).data(), bytes,
                                                            used, clear);
}

size_t open(const KeyBytes& key, uint64_t number, std::span<uint8_t> bytes, size_t clear) {
  return open_by<crypto_aead_chacha20poly1305_ietf_decrypt>(key, nonce_of(number).data(), bytes,
                                                            clear);
}

bool Replay::take(uint64_t number) {
  if (number + kBits <= last_) {
    return false;
  }
  while (last_ < number) {  // what is left of the window is shorter than it, or all of it goes
    if (number - last_ >= kBits) {
      seen_.fill(0);
      last_ = number;
      break;
    }
    ++last_;
    seen_[last_ / 64 % seen_.size()] &= ~(uint64_t{1} << last_ % 64);
  }
  uint64_t& word = seen_[number / 64 % seen_.size()];
  const uint64_t bit = uint64_t{1} << number % 64;
  const bool first = (word & bit) == 0;
  word |= bit;
  return first;
}

}  // namespace rio::wire::udp
