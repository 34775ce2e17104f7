// The protocol as bytes: QEMU 7.2, docs/specs/ivshmem-spec.txt, "The Client-Server Protocol".
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/unix_socket.hpp"
#include "fpga/cardsim/attachment.hpp"
#include "tests/support/temp_dir.hpp"

namespace rio::cardsim {
namespace {

/// Make a card of two vectors that listens for a guest.
[[nodiscard]] int listen_at(const std::string& path, std::unique_ptr<Attachment>* out) {
  name::Doorbell way;
  way.socket = path;
  way.vectors = 2;
  return attach(way, CardSpec{}, out);
}

class Server : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(listen_at(path_, &server_), 0); }
  /// Reads the next number, as bytes, and its descriptor.
  std::string next(const base::Fd& guest, base::Fd* fd) {
    char bytes[8];
    std::vector<base::Fd> fds;
    const ssize_t got =
        base::receive_with_fds(guest, std::as_writable_bytes(std::span(bytes)), &fds);
    *fd = fds.empty() ? base::Fd() : std::move(fds.front());
    EXPECT_LE(fds.size(), 1u);
    return got == 8 ? std::string(bytes, 8) : "";
  }

  test::TempDir dir_;
  const std::string path_ = dir_.at("ivs");
  std::unique_ptr<Attachment> server_;
};

TEST_F(Server, GreetsAGuest) {
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  base::Fd guest;
  ASSERT_EQ(base::connect_to(path_, SOCK_STREAM, &guest), 0);
  EXPECT_EQ(server_->peer(), Attachment::Peer::kNotYet);
  server_->serve();
  EXPECT_EQ(server_->peer(), Attachment::Peer::kHere);
  using namespace std::string_literals;
  base::Fd fd;
  EXPECT_EQ(next(guest, &fd), "\0\0\0\0\0\0\0\0"s);  // version 0
  EXPECT_FALSE(fd.valid());
  EXPECT_EQ(next(guest, &fd), "\1\0\0\0\0\0\0\0"s);  // the guest is peer 1
  EXPECT_FALSE(fd.valid());
  EXPECT_EQ(next(guest, &fd), "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);  // -1: the BAR
  ASSERT_TRUE(fd.valid());
  ASSERT_EQ(fstat(fd.get(), &info), 0);
  EXPECT_EQ(info.st_size, 0x20000);
  EXPECT_EQ(ftruncate(fd.get(), 0), -1);  // sealed
  uint64_t one = 1;
  uint64_t times = 0;
  for (int vector = 0; vector < 2; ++vector) {
    EXPECT_EQ(next(guest, &fd), "\0\0\0\0\0\0\0\0"s);  // the card is peer 0
    ASSERT_TRUE(fd.valid());
    ASSERT_EQ(write(fd.get(), &one, 8), 8);
    EXPECT_EQ(server_->counts().rings[vector], 0u);
    server_->serve();
    EXPECT_EQ(server_->counts().rings[vector], 1u);
  }
  for (uint32_t vector = 0; vector < 2; ++vector) {
    EXPECT_EQ(next(guest, &fd), "\1\0\0\0\0\0\0\0"s);
    ASSERT_TRUE(fd.valid());
    EXPECT_EQ(read(fd.get(), &times, 8), -1);
    server_->irqs()->raise(vector);
    EXPECT_EQ(read(fd.get(), &times, 8), 8);
    EXPECT_EQ(server_->counts().irqs[vector], 1u);
  }
  EXPECT_EQ(next(guest, &fd), "");
  server_->irqs()->raise(2);  // no such vector
  EXPECT_EQ(server_->counts().irqs.size(), 2u);
}

TEST_F(Server, TakesOneGuestAtATime) {
  base::Fd first;
  base::Fd second;
  ASSERT_EQ(base::connect_to(path_, SOCK_STREAM, &first), 0);
  server_->serve();
  ASSERT_EQ(base::connect_to(path_, SOCK_STREAM, &second), 0);
  testing::internal::CaptureStderr();
  server_->serve();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a second guest"), std::string::npos);
  char byte = 0;
  EXPECT_EQ(recv(second.get(), &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_EQ(send(first.get(), "noise", 5, 0), 5);  // it is ignored
  server_->serve();
  EXPECT_EQ(server_->peer(), Attachment::Peer::kHere);
  first.reset();
  server_->serve();
  EXPECT_EQ(server_->peer(), Attachment::Peer::kGone);
  ASSERT_EQ(base::connect_to(path_, SOCK_STREAM, &second), 0);
  server_->serve();  // the guest waits for a fresh card
  EXPECT_EQ(server_->peer(), Attachment::Peer::kGone);
  ASSERT_EQ(server_->renew(), 0);
  server_->serve();
  EXPECT_EQ(server_->peer(), Attachment::Peer::kHere);
  EXPECT_EQ(server_->counts().peers, 2u);
}

TEST_F(Server, ChecksPaths) {
  testing::internal::CaptureStderr();
  std::unique_ptr<Attachment> other;
  EXPECT_EQ(listen_at(path_, &other), -EADDRINUSE);
  EXPECT_EQ(listen_at(dir_.at("no/such/folder"), &other), -ENOENT);
  std::FILE* const file = std::fopen(dir_.at("file").c_str(), "w");
  std::fclose(file);
  EXPECT_EQ(listen_at(dir_.at("file"), &other), -EADDRINUSE);  // not a socket: left alone
  EXPECT_EQ(access(dir_.at("file").c_str(), F_OK), 0);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("no program listens"), std::string::npos);
  {
    base::Fd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    std::unique_ptr<Attachment> gone;
    ASSERT_EQ(listen_at(dir_.at("gone"), &gone), 0);
  }
  EXPECT_NE(access(dir_.at("gone").c_str(), F_OK), 0);
  // A socket without a server is replaced.
  base::Fd left_behind;
  ASSERT_EQ(base::listen_at(dir_.at("left"), SOCK_STREAM, &left_behind), 0);
  left_behind.reset();
  EXPECT_EQ(listen_at(dir_.at("left"), &other), 0);
}

}  // namespace
}  // namespace rio::cardsim
