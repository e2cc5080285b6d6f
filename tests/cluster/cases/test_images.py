"""Images as docs/user/install.md has users build them: from the sources, by the Dockerfile's last stage."""

from __future__ import annotations

import pytest
from cluster import objects, recipes
from cluster.cluster import Cluster
from cluster.workspace import Workspace

RUN_SECONDS = 120
# Of the sidecar: its program runs, and what it gives to training containers is there.
SCRIPT = "optcache-sidecar --help && test -f /usr/share/optcache/python/optcache/__init__.py"


@pytest.mark.long
def test_the_image_of_the_sidecar(cluster: Cluster, workspace: Workspace) -> None:
    image = recipes.from_sources("sidecar")
    cluster.load(image)
    pod = objects.sleeping_pod(workspace.name, "tried", {}, {})
    (container,) = pod["spec"]["containers"]
    container.update(name="sidecar", image=image.reference, command=["sh", "-c", SCRIPT], args=[])
    pod["spec"]["restartPolicy"] = "Never"
    workspace.apply(pod)
    workspace.wait_for("pod/tried", "jsonpath={.status.phase}=Succeeded", RUN_SECONDS)
    assert "--dataset" in workspace.log("tried", "sidecar")
