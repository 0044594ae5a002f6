import numpy as np
import pytest

from rlgym_bridge.game import BACK_WALL_Y, SIDE_WALL_X
from rlgym_bridge.rotations import from_euler, from_quaternions, to_quaternions
from rlgym_bridge.view.field import mesh_edges, outline, read_mesh


def as_mesh(triangles, vertices):
    head = np.array([len(triangles), len(vertices)], "<i4").tobytes()
    return head + np.array(triangles, "<i4").tobytes() + np.array(vertices, "<f4").tobytes()


SQUARE = ([(0, 1, 2), (0, 2, 3)], [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)])


def test_a_mesh_is_in_uu(tmp_path):
    (tmp_path / "x.cmf").write_bytes(as_mesh(*SQUARE))
    vertices, triangles = read_mesh(tmp_path / "x.cmf")
    assert vertices.tolist()[2] == [50, 50, 0]
    assert triangles.tolist() == [[0, 1, 2], [0, 2, 3]]


@pytest.mark.parametrize(("corner", "edges"), [((0, 1, 0), 4), ((0, 1, 1), 5)])
def test_a_fold_is_an_edge_and_a_diagonal_of_a_square_is_none(tmp_path, corner, edges):
    triangles, vertices = SQUARE
    (tmp_path / "x.cmf").write_bytes(as_mesh(triangles, [*vertices[:3], corner]))
    assert len(mesh_edges(tmp_path)) == edges


def test_edges_that_two_meshes_share_are_drawn_once(tmp_path):
    triangles, vertices = SQUARE
    (tmp_path / "x.cmf").write_bytes(as_mesh(triangles, vertices))
    (tmp_path / "y.cmf").write_bytes(as_mesh(triangles, np.add(vertices, (1, 0, 0))))
    assert len(mesh_edges(tmp_path)) == 6  # a flat rectangle of two squares: 7 less the one between them


@pytest.mark.parametrize("data", [b"", b"\1\0\0\0", as_mesh(*SQUARE)[:-4], as_mesh([(0, 1, 9)], SQUARE[1])])
def test_what_is_no_mesh_is_named(tmp_path, data):
    (tmp_path / "x.cmf").write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.cmf is no collision mesh"):
        read_mesh(tmp_path / "x.cmf")


def test_a_folder_without_meshes_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no \.cmf in"):
        mesh_edges(tmp_path)


def test_the_field_reaches_its_walls_on_both_sides_alike():
    edges = mesh_edges()
    high = edges.max((0, 1))
    assert SIDE_WALL_X < high[0] < SIDE_WALL_X + 20
    assert BACK_WALL_Y + 800 < high[1] < BACK_WALL_Y + 900  # the nets
    np.testing.assert_allclose(edges.min((0, 1))[:2], -high[:2], atol=0.1)
    assert np.abs(outline()).max(0).tolist() == [SIDE_WALL_X, BACK_WALL_Y, 0]


def test_quaternions_are_the_same_turn_as_the_matrices():
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (500, 3))
    angles = np.concatenate([angles, np.pi / 2 * np.array(np.meshgrid(*[range(4)] * 3)).reshape(3, -1).T])
    matrices = from_euler(angles)
    np.testing.assert_allclose(from_quaternions(to_quaternions(matrices)), matrices, atol=1e-12)


def test_a_rotation_that_is_not_known_turns_nothing():
    assert to_quaternions(np.zeros((1, 3, 3))).tolist() == [[1, 0, 0, 0]]
