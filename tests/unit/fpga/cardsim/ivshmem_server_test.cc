// The protocol as bytes: QEMU 7.2, docs/specs/ivshmem-spec.txt, "The Client-Server Protocol".
#include "fpga/cardsim/ivshmem_server.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/unix_socket.hpp"
#include "fpga/cardsim/event_irqs.hpp"
#include "fpga/cardsim/shared_bar.hpp"
#include "tests/support/temp_dir.hpp"

namespace rio::cardsim {
namespace {

class Server : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(SharedBar::anonymous("test", 0x20000, &bar_), 0);
    ASSERT_EQ(irqs_.open(2), 0);
    ASSERT_EQ(rings_.open(2), 0);
    ASSERT_EQ(server_.open(path_), 0);
  }
  void serve() { server_.serve(bar_.fd(), irqs_.fds(), rings_.fds()); }
  /// The next number, as bytes, and its descriptor.
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
  SharedBar bar_;
  EventIrqs irqs_;
  EventIrqs rings_;
  IvshmemServer server_;
};

TEST_F(Server, Greeting) {
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  base::Fd guest;
  ASSERT_EQ(base::connect_to(path_, SOCK_STREAM, &guest), 0);
  EXPECT_EQ(server_.peer(), IvshmemServer::Peer::kNotYet);
  serve();
  EXPECT_EQ(server_.peer(), IvshmemServer::Peer::kHere);
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
    EXPECT_EQ(read(rings_.fds()[vector], &times, 8), 8);
  }
  for (uint32_t vector = 0; vector < 2; ++vector) {
    EXPECT_EQ(next(guest, &fd), "\1\0\0\0\0\0\0\0"s);
    ASSERT_TRUE(fd.valid());
    EXPECT_EQ(read(fd.get(), &times, 8), -1);
    irqs_.raise(vector);
    EXPECT_EQ(read(fd.get(), &times, 8), 8);
    EXPECT_EQ(irqs_.raised()[vector], 1u);
  }
  EXPECT_EQ(next(guest, &fd), "");
  irqs_.raise(2);  // no such vector
  EXPECT_EQ(irqs_.raised().size(), 2u);
}

TEST_F(Server, OneGuestAtATime) {
  base::Fd first;
  base::Fd second;
  ASSERT_EQ(base::connect_to(path_, SOCK_STREAM, &first), 0);
  serve();
  ASSERT_EQ(base::connect_to(path_, SOCK_STREAM, &second), 0);
  testing::internal::CaptureStderr();
  serve();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a second guest"), std::string::npos);
  char byte = 0;
  EXPECT_EQ(recv(second.get(), &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_EQ(send(first.get(), "noise", 5, 0), 5);  // is not listened to
  serve();
  EXPECT_EQ(server_.peer(), IvshmemServer::Peer::kHere);
  first.reset();
  serve();
  EXPECT_EQ(server_.peer(), IvshmemServer::Peer::kGone);
  ASSERT_EQ(base::connect_to(path_, SOCK_STREAM, &second), 0);
  serve();  // waits for a fresh card
  EXPECT_EQ(server_.peer(), IvshmemServer::Peer::kGone);
  server_.forget();
  serve();
  EXPECT_EQ(server_.peer(), IvshmemServer::Peer::kHere);
  EXPECT_EQ(server_.guests(), 2u);
}

TEST_F(Server, Paths) {
  testing::internal::CaptureStderr();
  IvshmemServer other;
  EXPECT_EQ(other.open(path_), -EADDRINUSE);
  EXPECT_EQ(other.open(dir_.at("no/such/folder")), -ENOENT);
  std::FILE* const file = std::fopen(dir_.at("file").c_str(), "w");
  std::fclose(file);
  EXPECT_EQ(other.open(dir_.at("file")), -EADDRINUSE);  // no socket: left alone
  EXPECT_EQ(access(dir_.at("file").c_str(), F_OK), 0);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("no program listens"), std::string::npos);
  {
    base::Fd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    IvshmemServer gone;
    ASSERT_EQ(gone.open(dir_.at("gone")), 0);
  }
  EXPECT_NE(access(dir_.at("gone").c_str(), F_OK), 0);
  // A socket that its server left behind is replaced.
  base::Fd left_behind;
  ASSERT_EQ(base::listen_at(dir_.at("left"), SOCK_STREAM, &left_behind), 0);
  left_behind.reset();
  EXPECT_EQ(other.open(dir_.at("left")), 0);
}

}  // namespace
}  // namespace rio::cardsim
