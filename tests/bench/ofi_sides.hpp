#ifndef RIO_TESTS_BENCH_OFI_SIDES_HPP
#define RIO_TESTS_BENCH_OFI_SIDES_HPP

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>

namespace rio::bench {

/// Ends the program with exit code 1 and a line on stderr unless rc is 0.
/// @param what: the call that was made. @param rc: what it returned, 0 or -errno.
void check(const char* what, ssize_t rc);

/// An endpoint of the provider `rio`, with a domain, an address vector and a completion queue of
/// its own.
struct OfiSide {
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* ep = nullptr;
};

/// Two endpoints that one thread serves, on a fabric of emulated cards that only this process is
/// in, unless FI_RIO_CARD names another one. peer_of_one is the second's address at the first, and
/// the other way round. Ends the program if something fails.
struct OfiSides {
  /// @param caps: FI_RMA, FI_TAGGED, or both.
  explicit OfiSides(uint64_t caps);
  /// Closes all of it; what the program opened of a domain is closed already.
  ~OfiSides();
  OfiSides(const OfiSides&) = delete;
  OfiSides& operator=(const OfiSides&) = delete;
  OfiSides(OfiSides&&) = delete;
  OfiSides& operator=(OfiSides&&) = delete;

  fid_fabric* fabric = nullptr;
  OfiSide one;
  OfiSide other;
  fi_addr_t peer_of_one = 0;
  fi_addr_t peer_of_other = 0;
};

/// Looks once for a completion of the side; lets it work, too. Ends the program if an operation
/// failed. @return whether there was one.
bool poll(const OfiSide& side);

}  // namespace rio::bench

#endif
