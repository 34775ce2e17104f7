#include "fpga/wire/udp/seat.hpp"

#include <cerrno>

#include "fpga/wire/udp/greeting.hpp"
#include "fpga/wire/udp/path.hpp"

namespace rio::wire::udp {
namespace {

constexpr uint32_t kPatienceMaxS = 3600;

[[nodiscard]] int find_local(const Seat& seat, Address* out, std::string* error) {
  Address at;
  if (Address::local(seat.bind, seat.port, &at) != 0) {
    *error =
        "bind=" + seat.bind + ": neither an address of this machine, nor an interface that is up";
    return -EADDRNOTAVAIL;
  }
  if (!at.is_one_place()) {
    *error = "bind=" + seat.bind +
             ": others cannot reach the address of all interfaces, or of a group; give an address "
             "of this machine, or an interface";
    return -EADDRNOTAVAIL;
  }
  *out = at;
  return 0;
}

}  // namespace

int find_places(const Seat& seat, Places* out, std::string* error) {
  if (seat.members.empty() != (seat.id == 0)) {
    *error = "id= and members= belong together: the file says where each destID is";
    return -EINVAL;
  }
  if (seat.ids < 1 || seat.ids > kIdsMax || seat.patience_s < 1 ||
      seat.patience_s > kPatienceMaxS) {
    *error = "a card has 1 to 32 destIDs, and patience is 1 to 3600 seconds";
    return -EINVAL;
  }
  if (seat.members.empty()) {
    return find_local(seat, &out->own, error);
  }
  std::vector<Place> members;
  if (const int rc = read_members(seat.members, &members, error); rc != 0) {
    return rc;
  }
  Places places;
  for (const Place& place : members) {
    if (place.id == seat.id) {
      places.own = place.address;
    } else {
      places.others.push_back(place);
    }
  }
  if (places.own.family() == AF_UNSPEC) {
    *error = seat.members + ": no line for destID " + std::to_string(seat.id) +
             "; add one, or give id= one of the file";
    return -EINVAL;
  }
  *out = std::move(places);
  return 0;
}

int check_paths(const Seat& seat, const Address& own, const std::vector<Place>& others,
                std::string* warning, std::string* error) {
  uint32_t more = 0;
  std::string first;
  for (const Place& other : others) {
    const Verdict verdict = judge(own, other.address, path_between(own, other.address));
    if (!verdict.possible) {
      *error = seat.members + ": " + verdict.text;
      return -EADDRNOTAVAIL;
    }
    more += verdict.text.empty() || first.empty() ? 0 : 1;
    first = first.empty() ? verdict.text : first;
  }
  if (!first.empty()) {
    *warning = seat.members + ": " + first +
               (more == 0 ? "" : "; the same holds for " + std::to_string(more) + " other members");
  }
  return 0;
}

}  // namespace rio::wire::udp
