/// @file
/// pci-guest: the driver without EAL on a card of the guest. Shared by its subcommands.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pmd/api/riopmd.hpp"
#include "tests/qemu/guest/tell.hpp"

namespace rio::guest {

/// destID of queue pair 0; queue pair i has kDestId + i.
inline constexpr uint32_t kDestId = 0x100;
/// Fills bytes that identify a message. @param seed differs for each message.
void fill(void* at, size_t len_bytes, uint32_t seed);
[[nodiscard]] bool filled(const void* at, size_t len_bytes, uint32_t seed);

/// A card that hears itself, or one of two, with memory to send from and buffers to receive into.
class Station {
 public:
  static constexpr uint32_t kBuffers = 32;
  static constexpr uint32_t kTxBytes = 64 * 1024;

  /// Open a card. @param config its message_buffers is set here. @return false: the log says why.
  [[nodiscard]] bool open(const std::string& card, EndpointConfig config = {});
  /// Open another queue pair of the card of `first`.
  [[nodiscard]] bool open_beside(Station& first, EndpointConfig config);

  /// Send `message` and wait for its fate. @return false: there was none.
  [[nodiscard]] bool send(const pmd::TxMessage& message, pmd::TxDone* done);
  /// Wait for a message, take it, and post its buffer again. @param bytes set to where it landed,
  /// valid until the next one comes. @return false: none came.
  [[nodiscard]] bool receive(pmd::RxMessage* message, const uint8_t** bytes);
  /// Pass a message through the shared queue of `to`, and compare its bytes. @param value of the
  /// bytes. @return whether it was sent, arrived, and was right; errors are printed.
  [[nodiscard]] bool pass(Station& to, uint32_t len_bytes, uint32_t value, uint8_t mbox = 0);

  [[nodiscard]] Endpoint& card() { return *card_; }
  [[nodiscard]] uint32_t dest_id() { return card_->queues().dest_id(); }
  /// kTxBytes to send from.
  [[nodiscard]] const pmd::DmaMemory& memory() const { return memory_; }
  /// Close the card. @return as Endpoint::close().
  [[nodiscard]] int close();

 private:
  [[nodiscard]] bool prepare();

  std::unique_ptr<Endpoint> card_;
  pmd::DmaMemory memory_;
};

/// Arguments of a subcommand, after its name. Subcommands return the exit code.
using Arguments = std::vector<std::string>;
int find(const Arguments& args);
int messages(const Arguments& args);
int large_memory(const Arguments& args);
int dedicated(const Arguments& args);
int remote_memory(const Arguments& args);
int doorbells(const Arguments& args);
int pair(const Arguments& args);
int functions(const Arguments& args);
int interrupts(const Arguments& args);
int user_memory(const Arguments& args);
int user_memory_uio(const Arguments& args);
int unmapped(const Arguments& args);
int killed(const Arguments& args);
int lost_state(const Arguments& args);
int vanished(const Arguments& args);
int unbound(const Arguments& args);

}  // namespace rio::guest
