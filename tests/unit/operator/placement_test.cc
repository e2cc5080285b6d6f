#include "operator/reconcile/placement/placement.h"

#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

using Members = std::vector<std::string>;

Machine Node(const std::string& name, ByteCount memory = 100,
             std::map<std::string, std::string> labels = {}) {
  return {.member = name, .node = "node-" + name, .labels = std::move(labels), .memory = memory};
}

Demand Wanting(ByteCount bytes) {
  return {.dataset = "vision/imagenet", .wanted = bytes};
}

Placed PlaceOne(const std::vector<Machine>& machines, const Demand& demand) {
  return Place(machines, std::vector<Demand>{demand}).front();
}

bool Says(const Placed& placed, const std::string& text) {
  return placed.message.find(text) != std::string::npos;
}

TEST(Place, ADatasetThatNobodyReadsGetsEnoughNodesForItsCapacity) {
  std::vector<Machine> machines;
  for (const char* name : {"a", "b", "c", "d", "e"})
    machines.push_back(Node(name));
  EXPECT_EQ(PlaceOne(machines, Wanting(400)).members, (Members{"a", "b", "c", "d"}));
  EXPECT_EQ(PlaceOne(machines, Wanting(10)).members, (Members{"a", "b", "c"}));
  EXPECT_EQ(PlaceOne(machines, Wanting(10)).granted, 10U);
}

TEST(Place, TheMostNodesThatAreAllowedAreNotWhatIsWanted) {
  std::vector<Machine> machines;
  for (const char* name : {"a", "b", "c", "d", "e"})
    machines.push_back(Node(name));
  Demand demand = Wanting(10);
  demand.max_nodes = 5;
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"a", "b", "c"}));
}

TEST(Place, TheNodeSelectorLeavesNodesOut) {
  const std::vector<Machine> machines = {Node("a", 100, {{"pool", "cpu"}}),
                                         Node("b", 100, {{"pool", "gpu"}}), Node("c")};
  Demand demand = Wanting(10);
  demand.node_selector = {{"pool", "gpu"}};
  const Placed placed = PlaceOne(machines, demand);
  EXPECT_EQ(placed.members, (Members{"b"}));
  EXPECT_TRUE(Says(placed, "node selector: 1 of 3 nodes")) << placed.message;
  demand.node_selector = {{"pool", "tpu"}};
  EXPECT_EQ(PlaceOne(machines, demand).reason, PlacedReason::kNoMatchingNode);
}

TEST(Place, SaysOfEachMachineThatWasNotChosenWhy) {
  std::vector<Machine> machines = {Node("a", 100, {{"pool", "gpu"}}),
                                   Node("b", 100, {{"pool", "cpu"}}), Node("c")};
  for (const char* name : {"d", "e", "f", "g", "h"})
    machines.push_back(Node(name, 100, {{"pool", "gpu"}}));
  machines[3].cordoned = true;
  machines[4].leaving = true;
  machines[5].memory = 0;
  Demand demand = Wanting(10);
  demand.node_selector = {{"pool", "gpu"}};
  demand.max_nodes = 1;
  const Placed placed = PlaceOne(machines, demand);
  EXPECT_EQ(placed.members, Members{"a"});
  EXPECT_TRUE(Says(placed, "(node-b: pool is cpu, node-c: no label pool)")) << placed.message;
  EXPECT_TRUE(Says(placed, "(node-d: cordoned, node-e: leaving, node-f: offers none)"))
      << placed.message;
  EXPECT_TRUE(Says(placed, "; not needed: node-g, node-h;")) << placed.message;
}

TEST(Place, NamesOnlySomeOfManyMachines) {
  std::vector<Machine> machines;
  for (char name = 'a'; name <= 'z'; ++name)
    machines.push_back(Node(std::string(1, name)));
  const Placed placed = PlaceOne(machines, Wanting(10));
  EXPECT_TRUE(Says(placed, "not needed: node-d, node-e, node-f, node-g, node-h, and 18 more;"))
      << placed.message;
  Demand demand = Wanting(10);
  demand.node_selector = {{"pool", "gpu"}};
  EXPECT_TRUE(Says(PlaceOne(machines, demand), "no label pool, and 21 more)"));
}

TEST(Place, SaysWhenThereIsNoNodeOrNoMemory) {
  EXPECT_EQ(PlaceOne({}, Wanting(10)).reason, PlacedReason::kNoNodes);
  const Placed placed = PlaceOne({Node("a", 0)}, Wanting(10));
  EXPECT_EQ(placed.reason, PlacedReason::kNoMemory);
  EXPECT_TRUE(placed.members.empty());
  EXPECT_EQ(placed.granted, 0U);
}

TEST(Place, FollowsItsReaders) {
  Demand demand = Wanting(100);
  demand.readers = {"c"};
  const Placed placed = PlaceOne({Node("a"), Node("b"), Node("c")}, demand);
  EXPECT_EQ(placed.members, (Members{"c"}));
  EXPECT_EQ(placed.granted, 100U);
}

TEST(Place, OneReaderGetsTheMemoryOfOthersThatItsCapacityAsksFor) {
  Demand demand = Wanting(150);
  demand.readers = {"c"};
  const std::vector<Machine> machines = {Node("a"), Node("b"), Node("c")};
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"a", "c"}));
  EXPECT_EQ(PlaceOne(machines, demand).granted, 150U);
  demand.max_nodes = 1;
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"c"}));
}

TEST(Place, KeepsNodesThatStillHoldBytesWhileOthersRead) {
  Demand demand = Wanting(50);
  demand.readers = {"c"};
  demand.holders = {"a", "c"};
  EXPECT_EQ(PlaceOne({Node("a"), Node("b"), Node("c")}, demand).members, (Members{"a", "c"}));
}

TEST(Place, StaysWhereTheBytesAreWhenNobodyReads) {
  Demand demand = Wanting(50);
  demand.holders = {"b"};
  EXPECT_EQ(PlaceOne({Node("a"), Node("b"), Node("c")}, demand).members, (Members{"b"}));
  demand.wanted = 150;
  EXPECT_EQ(PlaceOne({Node("a"), Node("b"), Node("c")}, demand).members, (Members{"a", "b"}));
}

TEST(Place, NeverTakesMoreNodesThanAllowedAndReadersFirst) {
  Demand demand = Wanting(50);
  demand.readers = {"c", "d"};
  demand.holders = {"a"};
  demand.max_nodes = 2;
  const std::vector<Machine> machines = {Node("a"), Node("b"), Node("c"), Node("d")};
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"c", "d"}));
  demand.readers.clear();
  demand.holders.clear();
  EXPECT_EQ(PlaceOne(machines, demand).members.size(), 2U);
}

TEST(Place, GivesNothingNewToACordonedNode) {
  std::vector<Machine> machines = {Node("a"), Node("b")};
  machines[0].cordoned = true;
  Demand demand = Wanting(50);
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"b"}));
  demand.readers = {"a"};
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"a"}));
  machines[0].leaving = true;
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"b"}));
}

TEST(Place, AMachineThatDrainsGivesUpWhatNobodyReadsThroughIt) {
  std::vector<Machine> machines = {Node("a"), Node("b"), Node("c")};
  machines[0].cordoned = true;
  Demand demand = Wanting(50);
  demand.holders = {"a", "b"};
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"a", "b"}));
  machines[0].draining = true;
  const Placed placed = PlaceOne(machines, demand);
  EXPECT_EQ(placed.members, (Members{"b"}));
  EXPECT_TRUE(Says(placed, "(node-a: cordoned)")) << placed.message;
  demand.readers = {"c"};
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"b", "c"}));
  demand.readers = {"a"};
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"a", "b"}));
}

TEST(Place, AMachineThatDrainsKeepsWhatNoOtherCanTake) {
  std::vector<Machine> machines = {Node("a"), Node("b"), Node("c", 0), Node("d")};
  for (Machine& machine : machines)
    machine.cordoned = machine.draining = true;
  machines[2].cordoned = machines[2].draining = false;  // offers nothing
  machines[3].leaving = true;
  Demand demand = Wanting(50);
  demand.holders = {"a"};
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"a"}));
}

TEST(Place, PrefersGpuNodesOnlyWhenJobsAskForGpus) {
  std::vector<Machine> machines = {Node("a", 200), Node("b", 100)};
  machines[1].gpus = 8;
  Demand demand = Wanting(50);
  demand.max_nodes = 1;
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"a"}));
  demand.wants_gpus = true;
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"b"}));
}

TEST(Place, StaysInOneZone) {
  const std::map<std::string, std::string> east = {{"topology.kubernetes.io/zone", "east"}};
  const std::map<std::string, std::string> west = {{"topology.kubernetes.io/zone", "west"}};
  const std::vector<Machine> machines = {Node("a", 100, east), Node("b", 100, west),
                                         Node("c", 100, west)};
  Demand demand = Wanting(50);
  demand.max_nodes = 2;
  const Placed placed = PlaceOne(machines, demand);
  EXPECT_EQ(placed.members, (Members{"b", "c"}));
  EXPECT_TRUE(Says(placed, "zone: west first")) << placed.message;
  demand.max_nodes.reset();
  demand.wanted = 150;
  demand.holders = {"a"};
  EXPECT_EQ(PlaceOne(machines, demand).members, (Members{"a", "b"}));
}

TEST(Place, PutsDatasetsSideBySideOnFreeMemory) {
  const std::vector<Machine> machines = {Node("a"), Node("b")};
  std::vector<Demand> demands = {Wanting(80), Wanting(80)};
  for (Demand& demand : demands)
    demand.max_nodes = 1;
  const auto placed = Place(machines, demands);
  EXPECT_EQ(placed[0].members, (Members{"a"}));
  EXPECT_EQ(placed[1].members, (Members{"b"}));
}

Demand ReadAt(const std::string& name, double rate, ByteCount bytes) {
  return {.dataset = name,
          .wanted = bytes,
          .benefit = {{.until = bytes, .slope = rate / static_cast<double>(bytes)}},
          .read = rate};
}

TEST(Place, SharesOneNodeFairlyAndSaysSo) {
  std::vector<Demand> demands = {Wanting(1000), Wanting(20)};
  demands[1].dataset = "vision/coco";
  const auto placed = Place(std::vector<Machine>{Node("a")}, demands);
  EXPECT_EQ(placed[0].granted, 80U);
  EXPECT_EQ(placed[1].granted, 20U);
  EXPECT_TRUE(Says(placed[0], "; 80 B of 1000 B: no job reads it; shared with vision/coco"))
      << placed[0].message;
}

TEST(Place, GivesMemoryWhereItSavesMostAndSaysSo) {
  std::vector<Demand> demands = {ReadAt("vision/slow", 10, 100), ReadAt("vision/fast", 200, 100)};
  demands[0].guaranteed = 30;
  const auto placed = Place(std::vector<Machine>{Node("a", 60), Node("b", 60)}, demands);
  EXPECT_EQ(placed[0].granted, 30U);
  EXPECT_EQ(placed[0].shares, (std::vector<ByteCount>{15, 15}));
  EXPECT_EQ(placed[0].saved, 3);
  EXPECT_EQ(placed[0].why,
            "30 B of 100 B: saves 3 B/s; the next byte is worth more to vision/fast");
  EXPECT_EQ(placed[1].granted, 90U);
  EXPECT_EQ(placed[1].read, 200);
}

TEST(Place, SharesAreThoseOfTheMembersWhateverOrderTheMachinesHave) {
  const std::vector<Machine> machines = {Node("b", 300), Node("a", 100)};
  const Placed placed = PlaceOne(machines, Wanting(400));
  EXPECT_EQ(placed.members, (Members{"a", "b"}));
  EXPECT_EQ(placed.shares, (std::vector<ByteCount>{100, 300}));
}

TEST(Place, TakesNodesThatOthersHaveLeftRoomOn) {
  std::vector<Demand> demands = {ReadAt("vision/fast", 200, 100), ReadAt("vision/slow", 10, 100)};
  for (Demand& demand : demands)
    demand.readers = {"a"};
  const auto placed = Place(std::vector<Machine>{Node("a"), Node("b")}, demands);
  EXPECT_EQ(placed[0].members, Members{"a"});
  EXPECT_EQ(placed[1].members, (Members{"a", "b"}));
  EXPECT_EQ(placed[1].granted, 100U);
}

TEST(Place, WhatIsNotMeasuredIsNotSaid) {
  Demand demand = ReadAt("vision/new", 10, 100);
  demand.measured = false;
  const Placed placed = PlaceOne({Node("a")}, demand);
  EXPECT_EQ(placed.read, 0);
  EXPECT_EQ(placed.saved, 0);
  EXPECT_TRUE(Says(placed, "100 B of 100 B: how fast it is read is not known yet"));
}

TEST(Place, TheOrderOfMachinesDoesNotMatter) {
  const std::vector<Machine> machines = {Node("c"), Node("a", 50), Node("b")};
  const std::vector<Machine> sorted = {Node("a", 50), Node("b"), Node("c")};
  EXPECT_EQ(PlaceOne(machines, Wanting(120)), PlaceOne(sorted, Wanting(120)));
}

Machine WithDisk(const std::string& name, ByteCount memory, ByteCount disk) {
  Machine machine = Node(name, memory);
  machine.disk = disk;
  return machine;
}

Demand OnDisk(ByteCount bytes) {
  Demand demand = Wanting(bytes);
  demand.on_disk = true;
  return demand;
}

TEST(PlaceOnDisk, WhatMemoryHasNoRoomForLiesOnDisk) {
  const std::vector<Machine> machines = {WithDisk("a", 100, 300), WithDisk("b", 100, 100)};
  const Placed placed = PlaceOne(machines, OnDisk(400));
  EXPECT_EQ(placed.granted, 400U);
  EXPECT_EQ(placed.on_disk, 200U);
  EXPECT_EQ(placed.shares, (std::vector<ByteCount>{100, 100}));
  EXPECT_TRUE(Says(placed, "400 B of 400 B: no job reads it; 200 B of it on disk"))
      << placed.message;
}

TEST(PlaceOnDisk, WhoKeepsToMemoryIsGrantedNoDisk) {
  const std::vector<Machine> machines = {WithDisk("a", 100, 1000)};
  const Placed placed = PlaceOne(machines, Wanting(400));
  EXPECT_EQ(placed.granted, 100U);
  EXPECT_EQ(placed.on_disk, 0U);
}

TEST(PlaceOnDisk, NothingGoesThereWhereMemoryHasRoomOrThereIsNoDisk) {
  const std::vector<Machine> machines = {WithDisk("a", 500, 1000)};
  EXPECT_EQ(PlaceOne(machines, OnDisk(400)).on_disk, 0U);
  const Placed placed = PlaceOne({Node("a")}, OnDisk(400));
  EXPECT_EQ(placed.granted, 100U);
  EXPECT_TRUE(Says(placed, "none on disk")) << placed.message;
}

// As many nodes as memory and disks together ask for.
TEST(PlaceOnDisk, TakesNoMoreNodesThanItsBytesNeed) {
  std::vector<Machine> machines;
  for (const char* name : {"a", "b", "c", "d", "e"})
    machines.push_back(WithDisk(name, 100, 900));
  EXPECT_EQ(PlaceOne(machines, OnDisk(2500)).members.size(), 3U);
  EXPECT_EQ(PlaceOne(machines, OnDisk(3500)).members.size(), 4U);
  EXPECT_EQ(PlaceOne(machines, Wanting(3500)).members.size(), 5U);
}

// Memory goes where no disk is: what lies on disk anyway saves nothing more in memory.
TEST(PlaceOnDisk, MemoryGoesToWhoMayNotUseTheDisk) {
  const std::vector<Machine> machines = {WithDisk("a", 1000, 10'000)};
  Demand disk = OnDisk(4000);
  disk.dataset = "vision/disk";
  disk.benefit = {{.until = 4000, .slope = 5}};
  Demand memory = Wanting(900);
  memory.benefit = {{.until = 900, .slope = 1}};
  const std::vector<Placed> placed = Place(machines, std::vector<Demand>{disk, memory});
  // An eighth of what it asks for stays in memory: all that it has on disk has come by there.
  EXPECT_EQ(placed[0].shares, std::vector<ByteCount>{500});
  EXPECT_EQ(placed[0].granted, 4000U);
  EXPECT_EQ(placed[0].on_disk, 3500U);
  EXPECT_EQ(placed[1].granted, 500U);
  EXPECT_EQ(placed[1].on_disk, 0U);
}

TEST(PlaceOnDisk, MemoryGoesToWhomTheDisksHaveNoRoomFor) {
  const std::vector<Machine> machines = {WithDisk("a", 1000, 1000)};
  Demand disk = OnDisk(4000);
  disk.benefit = {{.until = 4000, .slope = 5}};
  Demand memory = Wanting(900);
  memory.dataset = "vision/memory";
  memory.benefit = {{.until = 900, .slope = 1}};
  const std::vector<Placed> placed = Place(machines, std::vector<Demand>{disk, memory});
  EXPECT_EQ(placed[0].granted, 2000U);
  EXPECT_EQ(placed[1].granted, 0U);
}

TEST(PlaceOnDisk, DisksAreDividedByWhatIsAskedOfThem) {
  const std::vector<Machine> machines = {WithDisk("a", 800, 3000)};
  Demand small = OnDisk(2000);
  small.dataset = "vision/small";
  Demand large = OnDisk(6000);
  large.dataset = "vision/large";
  const std::vector<Placed> placed = Place(machines, std::vector<Demand>{small, large});
  EXPECT_NEAR(static_cast<double>(placed[0].on_disk), 3000.0 * 1750 / 7200, 2);
  EXPECT_LE(placed[0].on_disk + placed[1].on_disk, 3000U);
  EXPECT_GE(placed[0].on_disk + placed[1].on_disk, 2998U);
}

// What is kept whatever happens may lie on disk, too.
TEST(PlaceOnDisk, AGuaranteeThatDisksHoldTakesNoMemoryFromOthers) {
  const std::vector<Machine> machines = {WithDisk("a", 1000, 10'000)};
  Demand disk = OnDisk(800);
  disk.dataset = "vision/disk";
  disk.guaranteed = 800;
  Demand memory = Wanting(900);
  memory.benefit = {{.until = 900, .slope = 1}};
  const std::vector<Placed> placed = Place(machines, std::vector<Demand>{disk, memory});
  EXPECT_EQ(placed[0].granted, 800U);
  EXPECT_EQ(placed[1].granted, 900U);
}

}  // namespace
}  // namespace optcache::reconcile
