// The text that dpdk-pmdinfo.py reads from the plug-in. One line of JSON after "PMD_INFO_STRING= ".

namespace rio::pmd {
namespace {

[[gnu::used, gnu::retain]] constexpr char kVdevInfo[] =
    "PMD_INFO_STRING= {\"name\" : \"net_rio\", \"params\" : \""
    "peers=<destIDs> mbox=<0-3> storm=<frames/s> handover=<0|1> card=<name> qp=<number>, or "
    "arguments of raw_rio "
    "for an emulated card of its own"
    "\", \"pci_ids\" : []}";

}  // namespace
}  // namespace rio::pmd
