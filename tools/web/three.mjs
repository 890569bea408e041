// What the live page draws with; the rest of three.js is left out of the bundle.
export {
  BoxGeometry, BufferAttribute, BufferGeometry, CapsuleGeometry, Color, CylinderGeometry, DirectionalLight,
  Group, HemisphereLight, LineBasicMaterial, LineSegments, Matrix4, Mesh, MeshStandardMaterial,
  PerspectiveCamera, REVISION, Scene, SphereGeometry, Vector3, WebGLRenderer,
} from 'three';
