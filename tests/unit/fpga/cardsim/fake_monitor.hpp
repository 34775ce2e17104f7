/// @file
/// A fake of QEMU's human monitor: answers "xp" like QEMU 7.2, with echo and escapes.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/unix_socket.hpp"

namespace rio::test {

class FakeMonitor {
 public:
  explicit FakeMonitor(const std::string& path) {
    EXPECT_EQ(base::listen_at(path, SOCK_STREAM, &listener_), 0);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  /// Sets the word at an address, in the form that QEMU prints.
  void set(const std::string& address, const std::string& value) {
    const std::lock_guard lock(mutex_);
    words_[address] = value;
  }
  /// Plays the end of QEMU.
  void hang_up() { hang_up_ = true; }
  void be_silent() { silent_ = true; }
  [[nodiscard]] uint32_t asked() const { return asked_; }

 private:
  void serve(const std::stop_token& stop) {
    base::Fd client;
    std::string line;
    while (!stop.stop_requested()) {
      pollfd fds[] = {{listener_.get(), POLLIN, 0}, {client.get(), POLLIN, 0}};
      poll(fds, client.valid() ? 2 : 1, 5);
      if (hang_up_) {
        client.reset();
        listener_.reset();
        return;
      }
      base::Fd fresh;
      if (base::accept_from(listener_, &fresh) == 0) {
        client.reset();
        client = std::move(fresh);
        say(client, "QEMU 7.2.22 monitor - type 'help' for more information\r\n(qemu) ");
      }
      char byte = 0;
      while (client.valid() && recv(client.get(), &byte, 1, MSG_DONTWAIT) == 1) {
        if (byte != '\n') {
          line += byte;
          continue;
        }
        answer(client, line);
        line.clear();
      }
    }
  }
  void answer(const base::Fd& client, const std::string& line) {
    if (silent_) {
      return;
    }
    ++asked_;
    const std::string address = line.substr(line.rfind("0x") + 2);
    const std::lock_guard lock(mutex_);
    say(client, line + "\x1B[K\r\n00000000" + address + ": " + words_[address] + "\r\n(qemu) ");
  }
  static void say(const base::Fd& client, const std::string& text) {
    static_cast<void>(!send(client.get(), text.data(), text.size(), MSG_NOSIGNAL));
  }

  std::mutex mutex_;
  std::map<std::string, std::string> words_;
  std::atomic<bool> hang_up_{false};
  std::atomic<bool> silent_{false};
  std::atomic<uint32_t> asked_{0};
  base::Fd listener_;
  std::jthread thread_;
};

}  // namespace rio::test
